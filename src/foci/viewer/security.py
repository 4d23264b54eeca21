"""Who may talk to the viewer: token, Host and origin of every request, and what a page may load.

The rules are those of a notebook server on one's own machine. A stranger on the network does not
reach a server on the loopback address; the token keeps out other users of the machine; the Host
allow-list keeps out a website whose name was pointed at this machine (DNS rebinding); the
``SameSite=Strict`` cookie and the origin keep out pages of other servers in the same browser.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
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
        self._cookie = cookie_name(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = Request(scope)
        given = request.query_params.get("token", "") if request.url.path == "/" else ""
        refused = self._refusal(request, given)

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if given and refused is None:
                    cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                    headers.append("Set-Cookie", cookie)
            await send(message)

        if refused is None:
            await self._app(scope, receive, protected)
        else:
            await PlainTextResponse(refused[1], refused[0])(scope, receive, protected)

    def _refusal(self, request: Request, given: str) -> tuple[int, str] | None:
        """Status and reason of a refusal; None for a request that may pass."""
        name = hostname(request.headers.get("host", ""))
        if name not in self._hosts and not (self._any_address and _is_address(name)):
            return 400, "This server does not go by that name."
        shown = given or request.cookies.get(self._cookie, "")
        if not secrets.compare_digest(shown.encode(), self._token.encode()):  # constant time
            return 403, "Open the address that foci view has printed: it carries the token."
        if len(request.url.path) + len(request.url.query) > LONGEST:
            return 414, "This address is too long."
        site = request.headers.get("sec-fetch-site", "same-origin")
        if request.url.path != "/" and site not in ("same-origin", "none"):
            return 403, "Other pages may not ask this server."
        if request.method not in ("GET", "HEAD"):
            own = f"{request.url.scheme}://{request.headers.get('host')}"
            if request.headers.get("origin") != own:
                return 403, "Only the viewer's own page may write."
        return None


def cookie_name(token: str) -> str:
    """Name of the cookie: cookies know no ports, so that every server needs its own."""
    return f"foci-{hashlib.sha256(token.encode()).hexdigest()[:8]}"


def new_token() -> str:
    """A random token, safe in addresses."""
    return secrets.token_urlsafe(24)


def hostname(host: str) -> str:
    """Name in a Host header, without port and brackets, in lower case.

    >>> hostname("LOCALHOST:8765"), hostname("[::1]:80"), hostname("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
