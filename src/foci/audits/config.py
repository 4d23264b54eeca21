"""Read the configuration of an audit from a YAML file, options and single settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, NonNegativeInt, PositiveFloat

from foci.audits.settings import AuditSettings
from foci.bags.cohort.options import CohortOptions
from foci.configuration import configure
from foci.errors import FociError
from foci.files.bounded import read_text, yaml_value


class ModelOptions(BaseModel):
    """The classifier to load.

    Attributes:
        model: Folder of ``foci train``, or a checkpoint file.
        model_options: Constructor arguments that a checkpoint's tensors do not show (``aligned``).
        expect: Table of answers of the user's own code, which decide the options left open.
        expect_tolerance: Largest difference from them; None for the usual one.
    """

    model: Path
    model_options: dict[str, Any] = {}
    expect: Path | None = None
    expect_tolerance: PositiveFloat | None = None


class Inputs(CohortOptions, ModelOptions):
    """The classifier to load, and the cohort to read.

    Attributes:
        split_seed: Seed of the patient split, if no table gives one; None for the model's.
    """

    split_seed: NonNegativeInt | None = None


class AuditConfiguration(AuditSettings, Inputs):
    """Everything that ``foci audit`` needs: settings, model, cohort, output folder and device.

    Attributes:
        out: The audit folder.
        device: Device to run on.
    """

    out: Path
    device: str = "auto"

    @property
    def settings(self) -> AuditSettings:
        """The settings alone, without paths and device; fields that were not set stay unset."""
        own = {name: getattr(self, name) for name in AuditSettings.model_fields}
        return AuditSettings(**{k: v for k, v in own.items() if k in self.model_fields_set})


def read_configuration(
    file: Path | None, given: Mapping[str, Any], changes: Mapping[str, Any]
) -> AuditConfiguration:
    """Merge a YAML file, command-line options and single settings; later ones win.

    Args:
        file: YAML file, or None.
        given: Values of options; None means that the option was not given.
        changes: Settings by dotted name, such as ``recipe_settings.budget.k_max``.

    >>> given = {"model": "m", "features": "f", "out": "o", "kappa": None}
    >>> read_configuration(None, given, {"recipe_settings.schedule.epochs": 2}).recipe_settings
    {'schedule.epochs': 2}
    >>> read_configuration(None, given, {"kapa": 0.8})
    Traceback (most recent call last):
    foci.errors.FociError: kapa: is not a setting of AuditConfiguration; did you mean 'kappa'?
    """
    values = {} if file is None else read_yaml(file)
    values |= {name: value for name, value in given.items() if value is not None}
    for key, value in changes.items():
        branch, dot, leaf = key.partition(".")
        if dot and branch in ("recipe_settings", "model_options"):
            values[branch] = {**(values.get(branch) or {}), leaf: value}
        else:
            values[key] = value
    return configure(AuditConfiguration, values)


class _TwiceError(ValueError):
    """A setting is given twice."""


class _Once(yaml.SafeLoader):
    """YAML loader that refuses duplicate keys; PyYAML itself keeps the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                raise _TwiceError(f"gives {name} twice (lines {lines[name]} and {line})")
            lines[name] = line
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> dict[str, Any]:
    """Settings of a YAML file, each given once."""
    try:
        content = yaml_value(read_text(file), _Once)
    except _TwiceError as error:
        raise FociError(file, str(error), "keep one of them") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise FociError(file, f"cannot be read ({why})", "check the path of --config") from None
    except ValueError as error:
        raise FociError(file, f"is not YAML ({error})", "write one setting per line") from None
    if not isinstance(content, dict):
        raise FociError(file, "holds no settings", "write one setting per line: kappa: 0.9")
    return {str(key): value for key, value in content.items()}
