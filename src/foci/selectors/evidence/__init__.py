"""Evidence without training: columns that a head starts from, and what an order gains over it."""
