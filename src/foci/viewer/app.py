"""The viewer as a web application: its page, its routes, and how errors become answers."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import lru_cache, wraps
from pathlib import Path
from urllib.parse import quote

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from foci.errors import FociError
from foci.exports import export
from foci.reports.payload import to_json
from foci.viewer.marks import MarkBook
from foci.viewer.security import LOOPBACK, Guard
from foci.viewer.slides import Catalogue, NoSuchSlideError, cohort_of, image_of, plain, slide_of

FOLDER = Path(__file__).parent / "page"
PAGE_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "viewer.js": "text/javascript; charset=utf-8",
    "viewer.css": "text/css; charset=utf-8",
    "LICENCES.txt": "text/plain; charset=utf-8",
}
"""Every file that is served, with its media type: no other is ever opened."""

DOWNLOAD_TYPES = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "geojson": "application/geo+json",
    "csv": "text/csv; charset=utf-8",
}
_DRAWING = threading.Lock()
"""Figures take memory and matplotlib's settings are global: one at a time."""

_KEPT = {"Cache-Control": "private, max-age=3600"}
"""For pictures, whose address changes with the file."""

_THREADS = 6
"""Requests that are answered at a time; each thread keeps some memory of its own."""

_MOST_BYTES, _SECONDS = 4096, 10
"""Of a mark."""

Answer = Callable[[Request], Response]


def load_page() -> dict[str, bytes]:
    """Read the page, and what ``npm run build`` has made for it, by file name."""
    found = {}
    for name in PAGE_TYPES:
        path = FOLDER / name if name == "index.html" else FOLDER / "bundle" / name
        if not path.is_file():
            fix = "run python3 dev.py run ... , or npm ci and npm run build in web/"
            raise FociError(path, "is not built", fix)
        found[name] = path.read_bytes()
    return found


def viewer_app(
    catalogue: Catalogue,
    marks: MarkBook,
    token: str,
    hosts: Collection[str] = LOOPBACK,
    any_address: bool = False,
) -> Starlette:
    """The viewer of one audit; :class:`Guard` explains token, hosts and addresses."""
    page = load_page()
    cohort = lru_cache(maxsize=1)(lambda: to_json(cohort_of(catalogue)))

    def file(name: str) -> Response:
        if name not in page:
            return Response(status_code=404)
        return Response(page[name], media_type=PAGE_TYPES[name])

    def tile(request: Request) -> Response:
        path = catalogue.image(request.path_params["number"])
        asked = [request.path_params[name] for name in ("level", "column", "row")]
        return _jpeg(None if path is None else catalogue.pictures.part(path, *asked))

    def crop(request: Request) -> Response:
        number = request.path_params["number"]
        path = catalogue.image(number)
        x, y, side = catalogue.corner(number, request.path_params["tile"])
        large = request.query_params.get("around") == "1"
        read = catalogue.pictures.surroundings if large else catalogue.pictures.crop
        return _jpeg(None if path is None else read(path, x, y, side))

    def thumbnail(request: Request) -> Response:
        path = catalogue.image(request.path_params["number"])
        return _jpeg(None if path is None else catalogue.pictures.thumbnail(path))

    def study(request: Request) -> Response:
        reader, first = (request.query_params.get(name, "") for name in ("reader", "first"))
        if not reader.strip() or not first.isdecimal() or len(first) > 4:
            raise FociError("study", "has no reader or no number of tiles", "enter both")
        return _json(to_json(marks.study(catalogue, reader.strip(), int(first))))

    def labels(request: Request) -> Response:
        headers = {"Content-Disposition": "attachment; filename*=UTF-8''reader-labels.csv"}
        text = marks.unblinded(catalogue)
        return Response(text, media_type=DOWNLOAD_TYPES["csv"], headers=headers)

    def image(request: Request) -> Response:
        pyramid, message = image_of(catalogue, request.path_params["number"])
        content = None if pyramid is None else pyramid.model_dump(mode="json")
        return JSONResponse({"pyramid": content, "message": message})

    def export(request: Request) -> Response:
        query, kind = request.query_params, request.path_params["kind"]
        rankings = [name for name in query.get("rankings", "").split(",") if name]
        number, k = request.path_params["number"], query.get("k", "msk")
        name, content = download(catalogue, number, kind, rankings, k)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
        return Response(content, media_type=DOWNLOAD_TYPES[kind], headers=headers)

    def slide(request: Request) -> Response:
        return _json(to_json(slide_of(catalogue, request.path_params["number"])))

    def write(body: bytes) -> Response:
        marks.add(catalogue, body)
        return Response(status_code=204)

    async def mark(request: Request) -> Response:
        try:
            with anyio.fail_after(_SECONDS):
                body = await _limited(request)
        except (ClientDisconnect, TimeoutError):
            return JSONResponse({"error": "broken off"}, 400)
        if body is None:
            return JSONResponse({"error": "too long"}, 413)
        return await run_in_threadpool(_answered(lambda request: write(body)), request)

    return Starlette(
        routes=[
            Route("/", lambda request: file("index.html")),
            Route("/static/{name}", lambda request: file(request.path_params["name"])),
            Route("/api/cohort", _answered(lambda request: _json(cohort()))),
            Route("/api/slides/{number:int}", _answered(slide)),
            Route("/api/slides/{number:int}/image", _answered(image)),
            Route(
                "/api/slides/{number:int}/parts/{level:int}/{column:int}_{row:int}.jpeg",
                _answered(tile),
            ),
            Route("/api/slides/{number:int}/tiles/{tile:int}.jpeg", _answered(crop)),
            Route("/api/slides/{number:int}/thumbnail.jpeg", _answered(thumbnail)),
            Route("/api/slides/{number:int}/export/{kind}", _answered(export)),
            Route("/api/study", _answered(study)),
            Route("/api/labels.csv", _answered(labels)),
            Route("/api/marks", mark, methods=["POST"]),
        ],
        lifespan=_few_threads,
        middleware=[Middleware(Guard, token=token, hosts=hosts, any_address=any_address)],
    )


@contextlib.asynccontextmanager
async def _few_threads(app: Starlette) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
    yield


def _answered(answer: Answer) -> Answer:
    """Errors of ours as one line with a fitting status; a slide that fails costs only itself."""

    @wraps(answer)
    def safe(request: Request) -> Response:
        try:
            return answer(request)
        except NoSuchSlideError as error:
            return JSONResponse({"error": plain(error)}, 404)
        except FociError as error:
            return JSONResponse({"error": plain(error)}, 422)

    return safe


async def _limited(request: Request) -> bytes | None:
    """The body of a request; None where it is too long, without reading all of it."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            return None
    return body


def _jpeg(content: bytes | None) -> Response:
    if content is None:
        return Response(status_code=404)
    return Response(content, media_type="image/jpeg", headers=_KEPT)


def _json(content: str) -> Response:
    return Response(content, media_type="application/json")


def download(
    catalogue: Catalogue, number: int, kind: str, rankings: Sequence[str], k: str
) -> tuple[str, bytes]:
    """Name and content of one file of a slide; GeoJSON holds the first of the rankings.

    Raises:
        FociError: If there is no such ranking or count, or the image cannot be read.
    """
    if kind not in DOWNLOAD_TYPES:
        raise FociError(kind, "is not a format", f"known: {', '.join(DOWNLOAD_TYPES)}")
    name = catalogue.slide_id(number)
    chosen = list(rankings)[:1] if kind == "geojson" else rankings
    with tempfile.TemporaryDirectory(prefix="foci-") as folder, _DRAWING:
        done = export(
            catalogue.audit,
            folder,
            [kind],
            [name],
            rankings=chosen,
            k=k,
            images=catalogue.paths,
            slide_mpp=catalogue.slide_mpp,
        )
        if not done.files:
            raise FociError(name, f"cannot be exported ({done.skipped[name]})", "see the reason")
        return done.files[0].name, done.files[0].read_bytes()
