"""Tables of the complementary checks: deletion, selected tiles only, ablations, budgets, cost."""
