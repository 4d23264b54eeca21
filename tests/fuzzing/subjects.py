"""The files that are damaged, by name."""

from tests.fuzzing.feature_files import FEATURE_FILES
from tests.fuzzing.other_files import OTHER_FILES
from tests.fuzzing.subject import Subject

SUBJECTS: dict[str, Subject] = {**FEATURE_FILES, **OTHER_FILES}
