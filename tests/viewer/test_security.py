"""Ways into the viewer, each tried: none may succeed."""

import re
import urllib.request
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from foci.audits import StoredAudit
from foci.slides.image import file_name
from foci.viewer import security
from foci.viewer.marks import MarkBook
from foci.viewer.security import new_token
from tests.viewer.conftest import ADDRESS, TOKEN, Visit

EVERY_PATH = (
    "/", "/static/viewer.js", "/static/LICENCES.txt", "/api/cohort", "/api/slides/5",
    "/api/slides/5/image", "/api/slides/5/parts/9/0_0.jpeg", "/api/slides/5/tiles/0.jpeg",
    "/api/slides/5/export/csv?k=3",
)  # fmt: skip
MARK = {"reader": "R", "slide": 5, "tile": 0, "label": "stroma"}


def cookies(client: TestClient) -> str:
    return "; ".join(f"{one.name}={one.value}" for one in client.cookies.jar)


@pytest.mark.parametrize("path", EVERY_PATH)
def test_with_the_token_every_path_answers(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", EVERY_PATH)
def test_no_token(visit: Visit, path: str) -> None:
    answer = visit(token=None).get(path)
    assert answer.status_code == 403
    assert answer.text == "Open the address that foci view has printed: it carries the token."


@pytest.mark.parametrize("wrong", ["x", TOKEN + "x", TOKEN[:-1], TOKEN.upper(), "é", "\x00"])
def test_wrong_token(visit: Visit, wrong: str) -> None:
    client = visit(token=wrong)
    assert not client.cookies
    assert client.get("/api/cohort").status_code == 403
    open_, name = visit(), "foci-8765"
    for value in (wrong, TOKEN):  # the token opens a session, and is no key to one
        stolen = open_.get("/api/cohort", headers={"Cookie": f"{name}={value}".encode()})
        assert stolen.status_code == 403


def test_a_token_in_the_address_opens_the_page_only(visit: Visit) -> None:
    client = visit(token=None)
    assert client.get(f"/api/cohort?token={TOKEN}").status_code == 403
    assert client.get(f"/static/viewer.js?token={TOKEN}").status_code == 403


def test_tokens_are_compared_in_constant_time(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(
        security.secrets, "compare_digest", lambda a, b: compared.append((a, b)) or False
    )
    assert visit(token=None).get("/api/cohort").status_code == 403
    assert visit(token=None).get("/?token=x").status_code == 403
    assert [a for a, _ in compared] == [b"", b"x"]
    assert compared[1][1] == TOKEN.encode() != compared[0][1]


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(visit: Visit) -> None:
    answer = visit(token=None).get("/", params={"token": TOKEN})
    assert answer.status_code == 303
    (cookie,) = answer.headers.get_list("set-cookie")
    found = re.fullmatch(
        r"foci-8765=([\w-]{32}); HttpOnly; SameSite=Strict; Path=(/[\w-]{32}/)", cookie
    )
    assert found, cookie
    assert found[2] == answer.headers["location"]
    assert len({TOKEN, found[1], found[2].strip("/")}) == 3
    assert new_token() != new_token()
    assert len(new_token()) >= 32


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "",
        "192.168.0.7:8765",
        "[::2]",
        "[::1]evil.com",
        "localhost:evil",
        "localhost:80:80",
        "evil.com@localhost",
    ],
)
def test_foreign_host_header(client: TestClient, host: str) -> None:
    answer = client.get("/api/cohort", headers={"Host": host})
    assert answer.status_code == 400
    assert "slides" not in answer.text


@pytest.mark.parametrize("host", ["localhost:8765", "LOCALHOST", "[::1]:8765", "127.0.0.1"])
def test_own_host_header(client: TestClient, host: str) -> None:
    headers = {"Host": host, "Cookie": cookies(client)}
    assert client.get("/api/cohort", headers=headers).status_code == 200


def test_beyond_loopback_addresses_pass_but_foreign_names_do_not(visit: Visit) -> None:
    client = visit(any_address=True, address="http://192.168.0.7:8765")
    assert client.get("/api/cohort").status_code == 200
    evil = {"Host": "evil.example", "Cookie": cookies(client)}
    assert client.get("/api/cohort", headers=evil).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/", "/static",
        "/static/%2e%2e%2f%2e%2e%2fmanifest.json", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd", "/api/slides/../../etc/passwd", "/api/slides/%2e%2e%2fmanifest.json",
        "/api/slides/5/tiles/..%2f..%2f0.jpeg", "/static/index.html%00.js", "/static/bundle",
        "/api", "/api/slides", "/api/slides/",
    ],
)  # fmt: skip
def test_traversal_and_listings(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (403, 404)  # above the session's path, or not there
    assert b"root:" not in answer.content
    assert b"import" not in answer.content


@pytest.mark.parametrize(
    "number", ["8", "99999999", "-1", "5x", "0.5", "TCGA-55-4005", "%00", "1e3"]
)
@pytest.mark.parametrize(
    "rest", ["", "/image", "/parts/9/0_0.jpeg", "/tiles/0.jpeg", "/export/csv"]
)
def test_slides_that_are_not_in_this_audit(client: TestClient, number: str, rest: str) -> None:
    assert client.get(f"/api/slides/{number}{rest}").status_code == 404


def test_an_image_beside_the_slides_is_never_served(
    client: TestClient, images: dict[str, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other.tif"
    other.write_bytes(next(iter(images.values())).read_bytes())
    for name in ("other", "other.tif", str(other), f"..%2f{other.name}"):
        assert client.get(f"/api/slides/{name}/parts/9/0_0.jpeg").status_code == 404


@pytest.mark.parametrize(
    "part",
    ["parts/999999999/0_0.jpeg", "parts/0/0_0.jpeg", "parts/11/999999_0.jpeg",
     "parts/11/0_99999999999999999999.jpeg", "parts/11/-1_0.jpeg", "parts/-1/0_0.jpeg",
     "parts/11/0_0.png", "tiles/99999999.jpeg", "tiles/-1.jpeg", f"parts/{'9' * 900}/0_0.jpeg"],
)  # fmt: skip
def test_oversized_tile_parameters(client: TestClient, part: str) -> None:
    assert client.get(f"/api/slides/5/{part}").status_code == 404


@pytest.mark.parametrize(
    "path", [f"/api/slides/{'9' * 5000}", f"/api/slides/5/export/csv?k={'9' * 5000}"]
)
def test_endless_addresses(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 414


@pytest.mark.parametrize(
    "query",
    ["k=0", "k=-3", "k=x", "k=1e9", "k=3&rankings=nope", f"k={'9' * 900}", "k=٣", "k=²", "k=%00"],
)
def test_odd_export_parameters_are_one_line(client: TestClient, query: str) -> None:
    answer = client.get(f"/api/slides/5/export/csv?{query}")
    assert answer.status_code == 422
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "null"},
        {"Origin": ADDRESS, "Sec-Fetch-Site": "cross-site"},
        {"Origin": ADDRESS, "Sec-Fetch-Site": "same-site"},
    ],
)
def test_cross_origin_post(client: TestClient, marks: MarkBook, headers: dict[str, str]) -> None:
    assert client.post("/api/marks", json=MARK, headers=headers).status_code == 403
    assert not marks.path.exists()


def test_a_page_of_another_port_may_not_read(client: TestClient) -> None:
    """Ports are one site to a browser: its cookie goes along, so that the site is checked."""
    for path in EVERY_PATH[1:]:
        answer = client.get(path, headers={"Sec-Fetch-Site": "same-site"})
        assert answer.status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9999", "null", ""])
def test_a_page_of_another_origin_may_not_read(client: TestClient, origin: str) -> None:
    for path in EVERY_PATH:
        assert client.get(path, headers={"Origin": origin}).status_code == 403
        assert client.get(path, headers={"Origin": ADDRESS}).status_code == 200


def test_another_port_is_sent_nothing(client: TestClient) -> None:
    """A browser sends a cookie to every port of a host, but only below its path."""
    jar = client.cookies.jar
    for path in ("/", "/api/cohort", "/?token=", "/static/viewer.js"):
        asked = urllib.request.Request(f"http://127.0.0.1:9999{path}")
        jar.add_cookie_header(asked)
        assert not asked.has_header("Cookie")
    (cookie,) = jar
    asked = urllib.request.Request(f"http://127.0.0.1:9999{cookie.path}api/cohort")
    jar.add_cookie_header(asked)
    assert asked.has_header("Cookie"), "the jar leaves cookies out because of their path only"


def test_another_session_and_another_port_are_refused(client: TestClient, visit: Visit) -> None:
    other = visit()
    assert other.get("/api/cohort", headers={"Cookie": cookies(client)}).status_code == 403
    renamed = cookies(other).replace("foci-8765", "foci-8766")
    assert other.get("/api/cohort", headers={"Cookie": renamed}).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods(client: TestClient, method: str) -> None:
    answer = client.request(method, "/api/cohort", headers={"Origin": ADDRESS})
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers


def test_a_mark_may_not_be_long_or_odd(client: TestClient, marks: MarkBook) -> None:
    own = {"Origin": ADDRESS}
    long = {**MARK, "reader": "R" * 5000}
    assert client.post("/api/marks", json=long, headers=own).status_code == 413
    for odd in (
        {**MARK, "slide": 99}, {**MARK, "tile": 10**9}, {**MARK, "tile": -1}, {**MARK, "more": 1},
        {**MARK, "label": "a" * 41}, {**MARK, "label": " "}, {**MARK, "slide": "5"}, [], "x",
    ):  # fmt: skip
        assert client.post("/api/marks", json=odd, headers=own).status_code in (404, 422)
    assert client.post("/api/marks", content=b"\xff{", headers=own).status_code == 422
    assert not marks.path.exists()


def test_no_page_may_be_framed_or_run_scripts_of_others(client: TestClient) -> None:
    for path in (*EVERY_PATH, "/nothing"):
        headers = client.get(path).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert policy["style-src"] == "'self'"
        assert policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert "unsafe" not in headers["content-security-policy"]
        assert "http" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    assert client.get("/api/cohort").headers["cache-control"] == "no-store"


def test_the_page_holds_no_script_and_no_name(client: TestClient, audit: StoredAudit) -> None:
    page = client.get("/").text
    assert page.count("<script") == 1
    assert '<script src="static/viewer.js"></script>' in page
    for name in audit.curves.slide_ids:
        assert name not in page


def test_a_slide_named_script_is_data_and_never_markup(
    client: TestClient, audit: StoredAudit
) -> None:
    assert audit.curves.slide_ids[0] == "<script>alert(1)</script>"
    for path in ("/api/cohort", "/api/slides/0", "/api/slides/0/export/csv?k=3"):
        answer = client.get(path)
        assert answer.headers["content-type"].split(";")[0] in ("application/json", "text/csv")
    said = client.get("/api/slides/0/export/csv?k=3").headers["content-disposition"]
    assert said == f"attachment; filename*=UTF-8''{file_name(audit.curves.slide_ids[0])}.csv"
    assert "<" not in said


def test_an_error_does_not_tell_folders(client: TestClient, images: dict[str, Path]) -> None:
    path = list(images.values())[1]
    path.unlink()
    for rest in ("/image", "/parts/9/0_0.jpeg", "/tiles/0.jpeg", ""):
        answer = client.get(f"/api/slides/5{rest}")
        assert "slide-5.tif: has vanished" in answer.text
        assert str(path.parent) not in answer.text
