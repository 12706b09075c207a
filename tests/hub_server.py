"""A server that stands in for the Hugging Face Hub: it keeps what is uploaded in memory.

It answers the requests that huggingface_hub makes to create a repository, to commit files and to
download them, as the client and the API of the Hub define them. Run as a program, it serves on a
free port, which it prints.
"""

import base64
import hashlib
import json
import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

REPOSITORIES: dict[str, dict] = {}


def missing() -> Response:
    return JSONResponse(
        {"error": "Repository not found"}, 404, headers={"X-Error-Code": "RepoNotFound"}
    )


async def create(request: Request) -> Response:
    wanted = await request.json()
    name = f"{wanted.get('organization') or 'anna'}/{wanted['name']}"
    if request.headers.get("authorization") != "Bearer secret":
        return JSONResponse({"error": "Invalid credentials"}, 401)
    known = name in REPOSITORIES
    REPOSITORIES.setdefault(name, {"files": {}, "sha": "0" * 40, "private": wanted.get("private")})
    url = f"{request.url.scheme}://{request.url.netloc}/{name}"
    return JSONResponse({"url": url, "name": name}, 409 if known else 200)


async def whoami(request: Request) -> Response:
    return JSONResponse({"type": "user", "name": "anna"})


async def validate(request: Request) -> Response:
    return JSONResponse({"errors": [], "warnings": []})


async def preupload(request: Request) -> Response:
    files = (await request.json())["files"]
    modes = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in files]
    return JSONResponse({"files": modes})


async def commit(request: Request) -> Response:
    repository = REPOSITORIES[name_of(request)]
    for line in (await request.body()).split(b"\n"):
        if not line.strip():
            continue
        entry = json.loads(line)
        if entry["key"] == "file":
            value = entry["value"]
            repository["files"][value["path"]] = base64.b64decode(value["content"])
        elif entry["key"] == "deletedFile":
            repository["files"].pop(entry["value"]["path"], None)
    contents = json.dumps(
        {name: hashlib.sha1(data).hexdigest() for name, data in repository["files"].items()}
    )
    repository["sha"] = hashlib.sha1(contents.encode()).hexdigest()
    url = f"{request.url.scheme}://{request.url.netloc}"
    return JSONResponse(
        {
            "success": True,
            "commitOid": repository["sha"],
            "commitUrl": f"{url}/{name_of(request)}/commit/{repository['sha']}",
        }
    )


async def info(request: Request) -> Response:
    repository = REPOSITORIES.get(name_of(request))
    if repository is None:
        return missing()
    siblings = [{"rfilename": name} for name in sorted(repository["files"])]
    return JSONResponse(
        {
            "_id": "1",
            "id": name_of(request),
            "modelId": name_of(request),
            "sha": repository["sha"],
            "siblings": siblings,
            "private": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
        }
    )


async def tree(request: Request) -> Response:
    repository = REPOSITORIES.get(name_of(request))
    if repository is None:
        return missing()
    entries = [
        {
            "type": "file",
            "path": name,
            "size": len(data),
            "oid": hashlib.sha1(data).hexdigest(),
        }
        for name, data in sorted(repository["files"].items())
    ]
    return JSONResponse(entries)


async def resolve(request: Request) -> Response:
    repository = REPOSITORIES.get(name_of(request))
    if repository is None:
        return missing()
    data = repository["files"].get(request.path_params["path"])
    if data is None:
        return JSONResponse({"error": "no"}, 404, headers={"X-Error-Code": "EntryNotFound"})
    headers = {
        "ETag": f'"{hashlib.sha1(data).hexdigest()}"',
        "X-Repo-Commit": repository["sha"],
        "Content-Length": str(len(data)),
    }
    return Response(b"" if request.method == "HEAD" else data, headers=headers)


async def other(request: Request) -> Response:
    sys.stderr.write(f"unknown request {request.method} {request.url.path}\n")
    return JSONResponse({"error": "unknown"}, 404)


def name_of(request: Request) -> str:
    return f"{request.path_params['user']}/{request.path_params['name']}"


application = Starlette(
    routes=[
        Route("/api/repos/create", create, methods=["POST"]),
        Route("/api/whoami-v2", whoami),
        Route("/api/validate-yaml", validate, methods=["POST"]),
        Route("/api/models/{user}/{name}/preupload/{revision}", preupload, methods=["POST"]),
        Route("/api/models/{user}/{name}/commit/{revision}", commit, methods=["POST"]),
        Route("/api/models/{user}/{name}/tree/{revision}", tree),
        Route("/api/models/{user}/{name}/tree/{revision}/{path:path}", tree),
        Route("/api/models/{user}/{name}/revision/{revision}", info),
        Route("/api/models/{user}/{name}", info),
        Route("/{user}/{name}/resolve/{revision}/{path:path}", resolve, methods=["GET", "HEAD"]),
        Route("/{path:path}", other, methods=["GET", "POST", "HEAD", "PUT", "DELETE"]),
    ]
)

if __name__ == "__main__":
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sys.stdout.write(f"http://127.0.0.1:{sock.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(application, log_level="warning")).run(sockets=[sock])
