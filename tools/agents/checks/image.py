"""A picture in a prompt reaches the model."""

import base64
import json
import struct
import zlib

from model import answer, say
from stage import CannotCheck, expect, said


def picture(side=64):
    """A PNG file of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xc0\x20\x60" * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def run(stage):
    stage.begin(answer("look at this", [say("A square.")]))
    data = base64.b64encode(picture()).decode()
    attachment = {"type": "embeddedResource", "label": "square.png", "contentType": "image/png", "data": data}
    ended = stage.prompt("look at this", attachments=[attachment])
    expect("A square." in said(ended), f"the answer is {said(ended)!r}")
    if not stage.capabilities().get("promptCapabilities", {}).get("image"):
        raise CannotCheck("it says that it takes no pictures")
    sent = [frame for frame in stage.frames("c->a") if frame.get("method") == "session/prompt"]
    expect(any(part["type"] == "image" for part in sent[-1]["params"]["prompt"]), f"the agent got no picture: {sent[-1]}")
    # An agent may write the picture again, smaller.
    body = json.dumps(stage.model.prompts("look at this")[-1]["body"])
    if "image" not in body or not any(word in body for word in ("base64", "inlineData", "image_url", "input_image")):
        raise CannotCheck("it takes pictures, and does not send them to this model")
