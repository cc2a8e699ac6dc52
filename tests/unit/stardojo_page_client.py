"""A client written from the protocol's page alone: a socket, ASCII, ``<EOF>``. It knows no Gamut.

``python stardojo_page_client.py PORT`` plays a short session and prints what it got as JSON.
"""

import base64
import json
import socket
import sys
import time

END = b"<EOF>"


def ask(port, request, timeout_s=10.0):
    """The bytes of the reply, with what the connection was closed by if it was."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as link:
        link.sendall(request)
        got = b""
        while not got.endswith(END):
            try:
                more = link.recv(65536)
            except TimeoutError:
                return got + b"(timeout)"
            if not more:
                return got + b"(closed)"
            got += more
        return got


def text(port, request, timeout_s=10.0):
    return ask(port, request, timeout_s).decode("ascii")


def observe(port):
    """Polls as a client has to after a load: until the reply is JSON and a day has started."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        reply = text(port, bytes.fromhex("6f 62 73 65 72 76 65 5f 76 32 25 33"))
        if reply.startswith("{"):
            seen = json.loads(reply[: -len("<EOF>")])
            if seen["CallBackData"]["OnDayStarted"] >= 1:
                return seen
        time.sleep(0.05)
    raise TimeoutError("no observation")


def session(port):
    told = {"before": text(port, b"observe_v2%3")}
    told["load"] = text(port, b"load_game_record%StarDojo_406041616_Port_10783")
    seen = observe(port)
    told["names"] = list(seen)
    told["player"] = seen["Player"]["Name"], seen["Player"]["Position"], seen["Player"]["Location"]
    told["tiles"] = len(seen["SurroundingsData"])
    told["vector"] = seen["Farm"]["Buildings"][0]["position"]
    width, height = seen["MetaData"]["ViewportSize"]
    told["pixels"] = len(base64.b64decode(seen["ScreenShot"])) / (width * height)
    told["examples"] = {
        request.decode(): text(port, request)
        for request in (
            b"move_relative%1%1",
            b"turn%0",
            b"choose_option%1%5%0",
            b"get_monster_kills%Green Slime",
            b"no_such%1",
            b"turn",
            b"turn%x",
            b"Turn%0",
        )
    }
    told["setup"] = text(port, b"add_item_by_name%Parsnip%5%0")
    told["bag"] = [each["Name"] for each in observe(port)["Player"]["Inventory"]]
    told["glued"] = text(port, b"turn%0turn%1")
    told["surroundings"] = list(json.loads(json.loads(text(port, b"get_surroundings%1")[:-5])[0]))
    told["pause"] = text(port, b"pause")
    told["hangs"] = text(port, b"turn%3", 0.3)
    told["facing"] = observe(port)["Player"]["FacingDirection"]
    told["resume"] = text(port, b"resume")
    time.sleep(0.3)
    told["zombie"] = observe(port)["Player"]["FacingDirection"]
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(session(int(sys.argv[1]))))
