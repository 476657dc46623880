"""Keys on the curve P-256, and certificates for clients, with nothing but the standard library. For tests: it is slow, and
careless with secrets."""

import base64
import hashlib
import secrets
from datetime import datetime, timedelta, timezone

FIELD = 2**256 - 2**224 + 2**192 + 2**96 - 1
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
CURVE = bytes.fromhex("06082a8648ce3d030107")
EC_KEY = bytes.fromhex("06072a8648ce3d0201")
SIGNED_WITH = bytes.fromhex("06082a8648ce3d040302")
COMMON_NAME, ORGANIZATION = bytes.fromhex("0603550403"), bytes.fromhex("060355040a")
BASIC_CONSTRAINTS, EXTENDED_USAGE, CLIENT = (bytes.fromhex(text) for text in ("0603551d13", "0603551d25", "06082b06010505070302"))


class Key:
    def __init__(self):
        self.secret = secrets.randbelow(ORDER - 1) + 1
        x, y = times(self.secret, BASE)
        self.point = b"\x04" + x.to_bytes(32, "big") + y.to_bytes(32, "big")

    def sign(self, message):
        digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
        while True:
            once = secrets.randbelow(ORDER - 1) + 1
            r = times(once, BASE)[0] % ORDER
            s = pow(once, -1, ORDER) * (digest + r * self.secret) % ORDER
            if r and s:
                return sequence(integer(r), integer(s))

    def pem(self):
        # The public key may be left out, but rustls wants it, and every tool writes it.
        public = tagged(0xA1, tagged(0x03, b"\x00" + self.point))
        content = sequence(integer(1), tagged(0x04, self.secret.to_bytes(32, "big")), tagged(0xA0, CURVE), public)
        return pem("EC PRIVATE KEY", content)


class Authority:
    """Signs certificates that say who a client is."""

    def __init__(self, name="clients"):
        self.key = Key()
        self.name = name
        self.certificate = self.issue(name, (), self.key, authority=True)

    def client(self, name, *groups, hours=1):
        """Certificate and key of a client, as two texts."""
        key = Key()
        return self.issue(name, groups, key, hours=hours), key.pem()

    def issue(self, name, groups, key, authority=False, hours=1):
        now = datetime.now(timezone.utc)
        algorithm = sequence(SIGNED_WITH)
        if authority:
            extension = sequence(BASIC_CONSTRAINTS, b"\x01\x01\xff", tagged(0x04, sequence(b"\x01\x01\xff")))
        else:
            extension = sequence(EXTENDED_USAGE, tagged(0x04, sequence(CLIENT)))
        content = sequence(
            tagged(0xA0, integer(2)), integer(secrets.randbits(64) + 1), algorithm, distinguished(self.name),
            sequence(moment(now - timedelta(hours=1)), moment(now + timedelta(hours=hours))), distinguished(name, *groups),
            sequence(sequence(EC_KEY, CURVE), tagged(0x03, b"\x00" + key.point)), tagged(0xA3, sequence(extension)),
        )
        return pem("CERTIFICATE", sequence(content, algorithm, tagged(0x03, b"\x00" + self.key.sign(content))))


def distinguished(name, *groups):
    parts = [(ORGANIZATION, group) for group in groups] + [(COMMON_NAME, name)]
    return sequence(*(tagged(0x31, sequence(kind, tagged(0x0C, text.encode()))) for kind, text in parts))


def moment(time):
    return tagged(0x18, time.strftime("%Y%m%d%H%M%SZ").encode())


def integer(number):
    return tagged(0x02, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def sequence(*parts):
    return tagged(0x30, b"".join(parts))


def tagged(tag, content):
    """An element in DER."""
    size = len(content)
    if size < 128:
        length = bytes([size])
    else:
        digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
        length = bytes([0x80 | len(digits)]) + digits
    return bytes([tag]) + length + content


def pem(kind, content):
    text = base64.b64encode(content).decode()
    lines = [text[start:start + 64] for start in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])


def times(number, point):
    """A point of the curve, so often added to itself."""
    total = None
    while number:
        if number & 1:
            total = plus(total, point)
        point = plus(point, point)
        number >>= 1
    return total


def plus(one, other):
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % FIELD == 0:
        return None
    if one == other:
        slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, FIELD)
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, FIELD)
    x3 = (slope * slope - x1 - x2) % FIELD
    return x3, (slope * (x1 - x3) - y1) % FIELD
