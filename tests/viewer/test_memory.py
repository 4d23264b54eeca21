"""What the server loads: no torch, whatever is asked of it."""

import json
import subprocess
import sys
from pathlib import Path

from foci.audits import StoredAudit

EVERY_REQUEST = """
import json, sys
from pathlib import Path
from starlette.testclient import TestClient
import foci.viewer.serve
from foci.audits import StoredAudit
from foci.viewer.app import viewer_app
from foci.viewer.slides import Catalogue
from foci.viewer.marks import MarkBook

audit = StoredAudit(Path(sys.argv[1]))
catalogue = Catalogue(audit, {audit.curves.slide_ids[0]: Path(sys.argv[2])})
app = viewer_app(catalogue, MarkBook(Path(sys.argv[3])), "token")
client = TestClient(app, base_url="http://127.0.0.1:8765", follow_redirects=False)
client.get("/", params={"token": "token"})
finest = client.get("/api/slides/0/image").json()["pyramid"]["finest"]
asked = [
    "/api/cohort",
    "/api/slides/0",
    f"/api/slides/0/parts/{finest}/0_0.jpeg",
    "/api/slides/0/tiles/0.jpeg",
    "/api/slides/0/export/csv?rankings=native&k=8",
    "/api/slides/0/export/png?rankings=native&k=8",
]
status = {path: client.get(path).status_code for path in asked}
print(json.dumps({"status": status, "torch": "torch" in sys.modules}))
"""


def test_the_server_never_loads_torch(audit: StoredAudit, image: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVERY_REQUEST, audit.folder, image, tmp_path / "marks.csv"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["status"].values()) == {200}
    assert found["torch"] is False
