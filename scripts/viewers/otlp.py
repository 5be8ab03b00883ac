"""Reads an OpenTelemetry profile by the project's own Python messages: `otlp.py FILE KIND UNIT`. Fails where an index is in no
table, or entry 0 of a table is not nothing. Prints as JSON the samples, the sum of all values, and of each function by its name
[exclusive samples, inclusive samples, exclusive value, inclusive value]."""

import collections
import json
import sys

from opentelemetry.proto.profiles.v1development import profiles_pb2


def main(path, *expected):
    with open(path, "rb") as file:
        data = profiles_pb2.ProfilesData.FromString(file.read())
    tables = data.dictionary
    names = "mapping", "location", "function", "link", "string", "attribute", "stack"
    for name in names:
        first = getattr(tables, f"{name}_table")[0]
        assert first == type(first)(), f"entry 0 of the table {name} is not nothing: {first}"

    def at(name, index):
        table = getattr(tables, f"{name}_table")
        assert 0 <= index < len(table), f"the table {name} has {len(table)} entries, and none of the index {index}"
        return table[index]

    for attribute in tables.attribute_table:
        at("string", attribute.key_strindex)
    for function in tables.function_table:
        at("string", function.name_strindex)
        at("string", function.filename_strindex)
    for mapping in tables.mapping_table:
        at("string", mapping.filename_strindex)
        [at("attribute", index) for index in mapping.attribute_indices]
    for location in tables.location_table:
        at("mapping", location.mapping_index)
        [at("attribute", index) for index in location.attribute_indices]

    functions = collections.defaultdict(lambda: [0, 0, 0, 0])
    kept = time = inlined = 0
    for resource in data.resource_profiles:
        keys = {attribute.key for attribute in resource.resource.attributes}
        assert {"process.executable.name", "service.name"} <= keys, keys
        for profile in (profile for scope in resource.scope_profiles for profile in scope.profiles):
            kind = profile.sample_type
            kind = at("string", kind.type_strindex), at("string", kind.unit_strindex)
            assert kind == expected, kind
            end = profile.time_unix_nano + profile.duration_nano
            for sample in profile.samples:
                assert len(sample.values) == len(sample.timestamps_unix_nano) > 0
                assert all(profile.time_unix_nano <= at_time < end for at_time in sample.timestamps_unix_nano)
                [at("attribute", index) for index in sample.attribute_indices]
                stack = []
                for index in at("stack", sample.stack_index).location_indices:
                    lines = at("location", index).lines
                    inlined += len(lines) - 1
                    for line in lines:
                        stack.append(at("string", at("function", line.function_index).name_strindex))
                samples, value = len(sample.values), sum(sample.values)
                kept, time = kept + samples, time + value
                functions[stack[0]][0] += samples
                functions[stack[0]][2] += value
                for name in set(stack):
                    functions[name][1] += samples
                    functions[name][3] += value
    json.dump({"kept": kept, "ns": time, "inlined": inlined, "functions": functions}, sys.stdout)


main(*sys.argv[1:])
