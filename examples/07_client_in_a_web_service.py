"""A small web service whose model is somebody else's: it asks privately, so the model's owner never sees a picture.

Run 04_serve_and_ask.py first, for the keys. The Sphynx server would be on another machine.

    browser -- picture --> this service -- masked numbers --> the owner of the weights

python examples/07_client_in_a_web_service.py
"""

import io
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from PIL import Image, ImageOps

import sphynx

OUT = Path("out/examples")
MAX_PICTURE_BYTES = 1 << 20
Image.MAX_IMAGE_PIXELS = 4_000_000  # a small file may be a huge picture


class Service(ThreadingHTTPServer):
    """POST a picture, get JSON. All requests share one client: its calls take turns."""

    def __init__(self, client: sphynx.Client) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.client = client


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or not 0 < int(size) <= MAX_PICTURE_BYTES:
            return self.answer(413, {"error": f"a picture of 1 to {MAX_PICTURE_BYTES:,} bytes, please"})
        try:  # cameras say in EXIF how to turn a picture
            picture = ImageOps.exif_transpose(Image.open(io.BytesIO(self.rfile.read(int(size)))))
            picture.load()
        except Exception:  # Pillow raises many kinds on what is not a picture
            return self.answer(400, {"error": "this is not a picture"})
        try:
            found = self.server.client.infer(picture)
        except sphynx.SphynxError as error:  # such as a server that is down: details are for our log
            self.log_message("%s", error)
            return self.answer(503, {"error": "the model does not answer now"})
        return self.answer(200, {"label": found.label, "probability": round(found.probability, 3)})

    def answer(self, status: int, content: dict[str, object]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, format: str, *args: object) -> None:
        print("  service:", format % args)


with (
    sphynx.Server(OUT / "compiled", keys=OUT / "keys" / "server", listen="127.0.0.1:0") as owner,
    sphynx.Client(owner.address, keys=OUT / "keys" / "alice") as client,
    Service(client) as service,
):
    threading.Thread(target=service.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{service.server_port}/"
    for kind in client.class_names:
        picture = (OUT / "shapes" / kind / "1.png").read_bytes()
        with urllib.request.urlopen(address, data=picture) as reply:
            print(f"{kind}: {reply.read().decode()}")
    service.shutdown()
