"""Barcodes of TCGA."""

import pytest

from foci.bags.matching import Barcode, case_of, parse_barcode, without_uuid
from foci.bags.tasks import diagnostic_barcode

UUID = "d4ff32cd-38cf-40ea-8213-45c2b100ac01"


def test_a_diagnostic_slide() -> None:
    barcode = parse_barcode(f"TCGA-2L-AAQA-01Z-00-DX1.{UUID.upper()}.svs")
    assert barcode == Barcode("TCGA-2L-AAQA", "2L", "01", "DX1")
    assert diagnostic_barcode(f"TCGA-2L-AAQA-01Z-00-DX1.{UUID}") == barcode


@pytest.mark.parametrize("slide", ["TS1", "MSA", "BS2"])
def test_frozen_sections_are_not_diagnostic(slide: str) -> None:
    name = f"TCGA-05-4244-11A-01-{slide}"
    assert parse_barcode(name) == Barcode("TCGA-05-4244", "05", "11", slide)
    assert diagnostic_barcode(name) == "frozen sections"
    assert diagnostic_barcode("TCGA-05-4244-11A-01-DX1") == "slides of normal tissue"


def test_a_bare_case_has_no_sample() -> None:
    assert parse_barcode("TCGA-05-4244") == Barcode("TCGA-05-4244", "05", None, None)
    assert parse_barcode("TCGA-05-4244-01") == Barcode("TCGA-05-4244", "05", "01", None)


def test_both_cases_are_one_patient() -> None:
    assert case_of("tcga-05-4244-01z-00-dx1") == case_of("TCGA-05-4244-01Z-00-DX2")


@pytest.mark.parametrize("name", ["TCGA-05-42445", "TCGA-5-4244", "xTCGA-05-4244", "C3L-00001-21"])
def test_other_names_are_no_barcodes(name: str) -> None:
    assert parse_barcode(name) is None
    assert case_of(name) == name


@pytest.mark.parametrize("uuid", [UUID, UUID.upper()])
def test_uuid_is_cut_off_a_tcga_name_only(uuid: str) -> None:
    assert without_uuid(f"TCGA-05-4244-01Z-00-DX1.{uuid}") == "TCGA-05-4244-01Z-00-DX1"
    assert without_uuid(f"biopsy-7.{uuid}") == f"biopsy-7.{uuid}"


@pytest.mark.parametrize("ending", ["", ".svs", f".{UUID}.svs", f"-{UUID}", f".{UUID[:-1]}"])
def test_anything_else_behind_a_barcode_stays(ending: str) -> None:
    name = f"TCGA-05-4244-01Z-00-DX1{ending}"
    assert without_uuid(name) == name
