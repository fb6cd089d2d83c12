#!/usr/bin/python3
"""check-schema.py SCHEMA FILE - is the JSON document in FILE what SCHEMA says, in every key? No
key may be there that the schema does not have: it is published, and who adds one adds it there.
FILE may be a page of smco-report --html: then it is that document within it.
"""
import json
import os
import subprocess
import sys

import jsonschema


def strict(schema):
    """The same, but with no other keys than those named."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    new = {key: strict(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        new.setdefault("additionalProperties", False)
    return new


def once(pairs):
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        sys.exit("a key stands twice: %s" % keys)
    return dict(pairs)


def no_constant(text):
    sys.exit("%s is no JSON" % text)


def one_of(validator, schemas, instance, schema):
    """The same as ever, but of those that it is not, each is left at its first error."""
    if sum(validator.evolve(schema=s).is_valid(instance) for s in schemas) != 1:
        yield from jsonschema.Draft202012Validator.VALIDATORS["oneOf"](validator, schemas, instance, schema)


Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"oneOf": one_of})

with open(sys.argv[1], encoding="utf-8") as f:
    schema = json.load(f)
with open(sys.argv[2], encoding="utf-8") as f:
    text = f.read()
is_page = text.startswith("<!DOCTYPE html>")
if is_page:
    # In parts (reports/terse.h).
    reader = os.path.join(os.path.dirname(__file__), "read-page.pl")
    text = subprocess.run(["perl", reader, sys.argv[2]], check=True, capture_output=True, text=True).stdout
document = json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
if is_page:
    del document["strips"]
jsonschema.Draft202012Validator.check_schema(schema)
errors = list(Validator(strict(schema)).iter_errors(document))
for error in errors[:9]:
    print("/".join(map(str, error.absolute_path)), error.message[:300])
sys.exit(len(errors) > 0)
