"""Who may talk to the viewer: token, Host and origin of every request, and what a page may load.

The rules are those of a notebook server on one's own machine. A stranger on the network does not
reach a server on the loopback address; the token keeps out other users of the machine; the Host
allow-list keeps out a website whose name was pointed at this machine (DNS rebinding); the
``SameSite=Strict`` cookie and the origin keep out pages of other servers in the same browser.

The token opens a session: the page moves to a path that nobody can guess, and the cookie, another
secret, is sent to that path only. Cookies know no ports, so that a server on another port of the
same machine would be sent one for ``/``; of this one it sees nothing.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""On every response. Nothing is loaded from elsewhere, and no script stands in the page."""

LONGEST = 1000
"""Characters of an address that the viewer's page could ask for."""


class Guard:
    """Refuse requests from strangers, and protect the page (ASGI middleware).

    Args:
        app: The viewer.
        token: Secret of this run, in the printed address.
        hosts: Names under which the server may be addressed.
        any_address: Also by any bare IP address; for servers that other machines may reach.
    """

    def __init__(
        self, app: ASGIApp, token: str, hosts: Collection[str] = LOOPBACK, any_address: bool = False
    ) -> None:
        self._app, self._token = app, token
        self._hosts, self._any_address = frozenset(hosts), any_address
        self._folder, self._session = f"/{new_token()}/", new_token()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = Request(scope)
        given = request.query_params.get("token", "") if request.url.path == "/" else ""
        cookie = cookie_name(scope)
        answer = self._refusal(request, given, request.cookies.get(cookie, ""))
        if answer is None and given:
            answer = RedirectResponse(self._folder, 303)
            answer.headers["Set-Cookie"] = (
                f"{cookie}={self._session}; HttpOnly; SameSite=Strict; Path={self._folder}"
            )

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if answer is None:
            path = scope["path"].removeprefix(self._folder.rstrip("/"))
            await self._app({**scope, "path": path}, receive, protected)
        else:
            await answer(scope, receive, protected)

    def _refusal(self, request: Request, given: str, session: str) -> Response | None:
        """The answer to a request that may not pass, else None."""
        name, path = hostname(request.headers.get("host", "")), request.scope["path"]
        if name not in self._hosts and not (self._any_address and _is_address(name)):
            return PlainTextResponse("This server does not go by that name.", 400)
        shown, secret = (given, self._token) if given else (session, self._session)
        known = secrets.compare_digest(shown.encode(), secret.encode())  # in constant time
        if not known or not (given or path.startswith(self._folder)):
            line = "Open the address that foci view has printed: it carries the token."
            return PlainTextResponse(line, 403)
        if len(path) + len(request.url.query) > LONGEST:
            return PlainTextResponse("This address is too long.", 414)
        site = request.headers.get("sec-fetch-site", "same-origin")
        if path not in ("/", self._folder) and site not in ("same-origin", "none"):
            return PlainTextResponse("Other pages may not ask this server.", 403)
        own = f"{request.url.scheme}://{request.headers.get('host')}"
        silent = own if request.method in ("GET", "HEAD") else None  # a page that reads names none
        if request.headers.get("origin", silent) != own:
            return PlainTextResponse("Only the viewer's own page may ask this server.", 403)
        return None


def cookie_name(scope: Scope) -> str:
    """Name of the cookie: cookies know no ports, so that every server needs its own."""
    return f"foci-{(scope.get('server') or (None, 0))[1]}"


def new_token() -> str:
    """A random token, safe in addresses."""
    return secrets.token_urlsafe(24)


def hostname(host: str) -> str:
    """Name in a Host header, without port and brackets, in lower case; empty for any other text.

    >>> hostname("LOCALHOST:8765"), hostname("[::1]:80"), hostname("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    >>> hostname("[::1]evil.com"), hostname("localhost:evil")
    ('', '')
    """
    found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([^\s:\[\]/@]+))(?::[0-9]{1,5})?", host.lower())
    return "" if found is None else found[1] or found[2]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
