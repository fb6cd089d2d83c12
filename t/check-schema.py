#!/usr/bin/python3
"""check-schema.py - for each line "SCHEMA FILE" of standard input: is the JSON document in FILE
what SCHEMA says, in every key? No key may be there that the schema does not have: it is published,
and who adds one adds it there. FILE may be a page of smco-report --html: then it is that document
within it. Answers with what is wrong, then "= 1", or with "= 0".
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
        raise ValueError("a key stands twice: %s" % keys)
    return dict(pairs)


def no_constant(text):
    raise ValueError("%s is no JSON" % text)


def one_of(validator, schemas, instance, schema):
    """The same as ever, but of those that it is not, each is left at its first error."""
    if sum(validator.evolve(schema=s).is_valid(instance) for s in schemas) != 1:
        yield from jsonschema.Draft202012Validator.VALIDATORS["oneOf"](validator, schemas, instance, schema)


Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"oneOf": one_of})


def validator_of(path, made={}):
    """Made once."""
    if path not in made:
        with open(path, encoding="utf-8") as f:
            schema = json.load(f)
        jsonschema.Draft202012Validator.check_schema(schema)
        made[path] = Validator(strict(schema))
    return made[path]


def document_of(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    is_page = text.startswith("<!DOCTYPE html>")
    if is_page:
        # In parts (reports/terse.h).
        reader = os.path.join(os.path.dirname(__file__), "read-page.pl")
        text = subprocess.run(["perl", reader, path], check=True, capture_output=True, text=True).stdout
    document = json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
    if is_page:
        del document["strips"]
    return document


for line in sys.stdin:
    schema, path = line.split()
    try:
        errors = ["/".join(map(str, e.absolute_path)) + " " + e.message[:300].replace("\n", " ")
                  for e in validator_of(schema).iter_errors(document_of(path))]
    except (ValueError, subprocess.CalledProcessError) as e:
        errors = [str(e)]
    print("\n".join(errors[:9] + ["= %d" % bool(errors)]), flush=True)
