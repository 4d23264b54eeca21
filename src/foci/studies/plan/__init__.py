"""From study.yaml to cells: schema, profiles, cohorts, keys."""
