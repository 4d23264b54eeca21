"""One made-up audit with images of some of its slides, and the viewer of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="starlette is not installed")

from starlette.testclient import TestClient

from foci.audits import StoredAudit
from foci.viewer.app import viewer_app
from foci.viewer.marks import MarkBook
from foci.viewer.slides import Catalogue
from tests.makers.slides import squares, write_slide
from tests.makers.synthetic import Plan, make
from tests.reports.conftest import browser as browser

TOKEN = "a-token-of-the-tests"
SIDE = 32
COLUMNS, ROWS = 52, 42
ADDRESS = "http://127.0.0.1:8765"


@pytest.fixture(scope="session")
def audit(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    """Eight slides, the first three of hostile names, the fourth without coordinates."""
    return make(tmp_path_factory.mktemp("audit"), Plan(n_slides=8, step=SIDE, k_max=64))


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A slide on which every cell of the lattice has its own colour."""
    path = tmp_path_factory.mktemp("image") / "squares.tif"
    return write_slide(path, squares(COLUMNS, ROWS, SIDE), mpp=0.5)


@pytest.fixture
def images(audit: StoredAudit, image: Path, tmp_path: Path) -> dict[str, Path]:
    """Images of the slides 0, 5 and 6, each a file of its own that a test may break."""
    found = {}
    for number in (0, 5, 6):
        path = tmp_path / f"slide-{number}.tif"
        shutil.copy(image, path)
        found[audit.curves.slide_ids[number]] = path
    return found


@pytest.fixture
def catalogue(audit: StoredAudit, images: dict[str, Path]) -> Catalogue:
    return Catalogue(audit, images)


@pytest.fixture
def marks(tmp_path: Path) -> MarkBook:
    return MarkBook(tmp_path / "marks.csv")


Visit = Callable[..., TestClient]


def entered(client: TestClient, token: str | None) -> TestClient:
    """A client that has shown a token; its further requests are for the session's own path."""
    if token is not None:
        answer = client.get("/", params={"token": token})
        client.base_url = client.base_url.join(answer.headers.get("location", "/"))
    return client


@pytest.fixture
def visit(catalogue: Catalogue, marks: MarkBook) -> Visit:
    """A browser that may have the token, as its first request."""

    def go(token: str | None = TOKEN, address: str = ADDRESS, **settings: bool) -> TestClient:
        app = viewer_app(catalogue, marks, TOKEN, **settings)
        return entered(TestClient(app, base_url=address, follow_redirects=False), token)

    return go


@pytest.fixture
def client(visit: Visit) -> TestClient:
    return visit()
