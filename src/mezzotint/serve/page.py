"""The page: files of the package at `/` and `/page/…`, and what a browser may do with them.

Law: nothing but these files, all read at start, is ever served; a name is looked up, never
joined to a path. The policy lets the page load and ask its own origin only, run no script that
is not a file here, and be framed by nobody.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from fastapi import APIRouter, Request
from fastapi.responses import Response

from mezzotint.serve.problems import Problem

INDEX = "index.html"
TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Cache-Control": "no-cache",  # kept, and asked about: a new version is seen at once
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    type: str
    tag: str

    @classmethod
    def of(cls, name: str, content: bytes) -> Asset:
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        return cls(content, TYPES[name.rpartition(".")[2]], tag)

    def response(self, request: Request) -> Response:
        headers = {**HEADERS, "ETag": self.tag}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.type, headers=headers)


def assets() -> dict[str, Asset]:
    """The files of the page, by name."""
    folder = files(__package__) / "page"
    found = [file for file in folder.iterdir() if file.name.rpartition(".")[2] in TYPES]
    return {file.name: Asset.of(file.name, file.read_bytes()) for file in found}


def router() -> APIRouter:
    routes, known = APIRouter(include_in_schema=False), assets()

    @routes.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return known[INDEX].response(request)

    @routes.api_route("/page/{name}", methods=["GET", "HEAD"])
    async def asset(name: str, request: Request) -> Response:
        if name not in known:
            raise Problem(404, "the page has no such file")
        return known[name].response(request)

    return routes
