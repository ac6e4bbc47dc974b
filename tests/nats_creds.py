"""nats_creds.py FOLDER: an operator, accounts and users of NATS, as its tool nsc would make them. Writes operator.conf,
lines for a server's configuration, and credentials: tuner.creds and worker.creds, whose users may say what docs/fleet.md
says that they need, and stranger.creds, of an account that the server does not know.

Keys are those of https://github.com/nats-io/nkeys, base32 of a prefix, an Ed25519 key and its CRC-16; tokens are JWTs signed
with them (https://github.com/nats-io/jwt). openssl does the arithmetic."""
import base64, binascii, json, os, subprocess, sys, time

ACCOUNT, OPERATOR, USER, SEED = 0, 14 << 3, 20 << 3, 18 << 3
folder = sys.argv[1]


def openssl(*words):
    return subprocess.run(["openssl", *words], check=True, capture_output=True).stdout


def text(head, raw):
    raw = head + raw
    crc = binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(raw + crc).decode().rstrip("=")


def plain64(raw):
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


class Key:
    def __init__(self, name, prefix):
        self.name, self.file = name, os.path.join(folder, name + ".pem")
        openssl("genpkey", "-algorithm", "ed25519", "-out", self.file)
        self.public = text(bytes([prefix]), openssl("pkey", "-in", self.file, "-pubout", "-outform", "DER")[-32:])
        self.seed = text(bytes([SEED | prefix >> 5, (prefix & 31) << 3]),
                         openssl("pkey", "-in", self.file, "-outform", "DER")[-32:])

    def sign(self, of, claims):
        what = {"jti": of.public, "iat": int(time.time()), "iss": self.public, "name": of.name, "sub": of.public,
                "nats": {"version": 2, **claims}}
        words = ".".join(plain64(json.dumps(x).encode()) for x in ({"typ": "JWT", "alg": "ed25519-nkey"}, what))
        path = os.path.join(folder, "token")
        with open(path, "w") as f:
            f.write(words)
        return words + "." + plain64(openssl("pkeyutl", "-sign", "-inkey", self.file, "-rawin", "-in", path))


def account(operator, name, room):
    key = Key(name, ACCOUNT)
    limits = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
    limits |= dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), room) | {"wildcards": True}
    return key, operator.sign(key, {"type": "account", "limits": limits})


def credentials(of, name, publish):
    key = Key(name, USER)
    token = of.sign(key, {"type": "user", "subs": -1, "data": -1, "payload": -1, "pub": {"allow": publish},
                          "sub": {"allow": ["_INBOX.>"]}})
    with open(os.path.join(folder, name + ".creds"), "w") as f:
        f.write(f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
                f"-----BEGIN USER NKEY SEED-----\n{key.seed}\n------END USER NKEY SEED------\n")


operator = Key("operator", OPERATOR)
system, system_token = account(operator, "system", 0)
fleet, fleet_token = account(operator, "fleet", -1)
other, _ = account(operator, "other", -1)
worker = ["tarn.*.answer.>", "$JS.ACK.>", "$KV.tarn-workers.>", "$KV.tarn-aside.>", "$JS.API.>"]
credentials(fleet, "worker", worker)
credentials(fleet, "tuner", worker + ["tarn.*.job.>"])
credentials(other, "stranger", worker)
with open(os.path.join(folder, "operator.conf"), "w") as f:
    f.write(f"operator: {operator.sign(operator, {'type': 'operator'})}\nsystem_account: {system.public}\n"
            f"resolver: MEMORY\nresolver_preload {{\n  {system.public}: {system_token}\n  {fleet.public}: {fleet_token}\n}}\n")
