"""Recomputes a record's id by docs/record.md alone: `python3 check_id.py RECORD`."""
import hashlib
import json
import struct
import sys


def canonical(tree):
    if isinstance(tree, dict):
        fields = sorted(tree.items(), key=lambda field: field[0].encode())
        return "{" + ",".join(canonical(k) + ":" + canonical(v) for k, v in fields) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(canonical, tree)) + "]"
    if isinstance(tree, float):
        return '"f64:%s"' % struct.pack(">d", tree).hex()
    return json.dumps(tree, ensure_ascii=False)


record = json.load(open(sys.argv[1], encoding="utf-8"))
said = record.pop("id")
record.pop("answer_hash")
found = hashlib.sha256(canonical(record).encode()).hexdigest()
print(found, "as the record says" if found == said else f"but the record says {said}")
sys.exit(found != said)
