"""Training hyperparameters."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt


class TrainingRecipe(BaseModel):
    """Hyperparameters that decide the trained weights, besides data and architecture.

    Attributes:
        epochs: Passes over the training slides, in every stage of the objective (the paper: 20).
        lr: Peak learning rate of AdamW.
        weight_decay: Of AdamW.
        schedule: ``"cosine"`` to zero over a stage, or ``"constant"``.
        batch_size: Bags per step, padded to the longest.
        clip: Largest gradient norm; 0 for none.
        balanced: Draw slides with replacement so that every class is seen equally often.
        objective: Settings of the classifier's own objective.
        seed: Of initialisation, order, dropout and masking.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: PositiveInt = 20
    lr: Annotated[float, Field(gt=0, le=1e6)] = 2e-4  # far beyond, AdamW leaves single precision
    weight_decay: NonNegativeFloat = 1e-5
    schedule: Literal["cosine", "constant"] = "cosine"
    batch_size: PositiveInt = 1
    clip: NonNegativeFloat = 5.0
    balanced: bool = False
    objective: dict[str, Any] = Field(default_factory=dict)
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
