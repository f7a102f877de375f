# SPDX-License-Identifier: Apache-2.0
# read_chakra.py <write_random_chakra>: Python's protobuf reads the files that it writes, knows every field, and writes the same bytes again.
import subprocess
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto
MEMBERS = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes")


def add_field(message, name, number, kind, label=Field.LABEL_OPTIONAL, type_name="", oneof=None):
    field = message.field.add(name=name, number=number, label=label, type=kind)
    if type_name:
        field.type_name = type_name
    if oneof is not None:
        field.oneof_index = oneof


def schema():
    """The schema of Chakra execution traces; the enum as the int32 that it is on the wire."""
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="et", syntax="proto3")
    attribute = descriptor_pb2.DescriptorProto(name="AttributeProto")
    attribute.oneof_decl.add(name="value")
    add_field(attribute, "name", 1, Field.TYPE_STRING)
    add_field(attribute, "doc_string", 2, Field.TYPE_STRING)
    for i, member in enumerate(MEMBERS):
        kind = getattr(Field, "TYPE_" + member.upper())
        values = file.message_type.add(name=member + "_values")
        add_field(values, "values", 1, kind, Field.LABEL_REPEATED)
        add_field(attribute, member + "_val", 3 + 2 * i, kind, oneof=0)
        add_field(attribute, member + "_list", 4 + 2 * i, Field.TYPE_MESSAGE, type_name=f".et.{member}_values", oneof=0)
    file.message_type.append(attribute)
    metadata = file.message_type.add(name="GlobalMetadata")
    add_field(metadata, "version", 1, Field.TYPE_STRING)
    add_field(metadata, "attr", 2, Field.TYPE_MESSAGE, Field.LABEL_REPEATED, ".et.AttributeProto")
    io = file.message_type.add(name="IOInfo")
    for number, name in enumerate(("values", "shapes", "types"), 1):
        add_field(io, name, number, Field.TYPE_STRING)
    node = file.message_type.add(name="Node")
    add_field(node, "id", 1, Field.TYPE_UINT64)
    add_field(node, "name", 2, Field.TYPE_STRING)
    add_field(node, "type", 3, Field.TYPE_INT32)
    add_field(node, "ctrl_deps", 4, Field.TYPE_UINT64, Field.LABEL_REPEATED)
    add_field(node, "data_deps", 5, Field.TYPE_UINT64, Field.LABEL_REPEATED)
    add_field(node, "start_time_micros", 6, Field.TYPE_UINT64)
    add_field(node, "duration_micros", 7, Field.TYPE_UINT64)
    add_field(node, "inputs", 8, Field.TYPE_MESSAGE, type_name=".et.IOInfo")
    add_field(node, "outputs", 9, Field.TYPE_MESSAGE, type_name=".et.IOInfo")
    add_field(node, "attr", 10, Field.TYPE_MESSAGE, Field.LABEL_REPEATED, ".et.AttributeProto")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)

    def make(name):
        descriptor = pool.FindMessageTypeByName("et." + name)
        get = getattr(message_factory, "GetMessageClass", None)  # older ones have a factory
        return get(descriptor) if get else message_factory.MessageFactory(pool).GetPrototype(descriptor)

    return make("GlobalMetadata"), make("Node")


def messages(data):
    at = 0
    while at < len(data):
        size = shift = 0
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield data[at : at + size]
        at += size


def main():
    Metadata, Node = schema()
    used = set()
    nodes = 0
    for seed in range(5):
        data = subprocess.run([sys.argv[1], str(seed), "400"], check=True, stdout=subprocess.PIPE).stdout
        for i, raw in enumerate(messages(data)):
            message = (Node if i else Metadata)()
            message.ParseFromString(raw)
            message.DiscardUnknownFields()
            used.update(a.WhichOneof("value") for a in message.attr)
            if message.SerializeToString(deterministic=True) != raw:
                sys.exit(f"seed {seed}, message {i}: protobuf writes other bytes:\n{message}")
            if i and message.id != i:
                sys.exit(f"seed {seed}: node {i} reads as node {message.id}")
            nodes += i > 0
    missing = {m + end for m in MEMBERS for end in ("_val", "_list")} - used
    if nodes != 2000 or missing:
        sys.exit(f"{nodes} nodes of 2000 were read; members that none of them has: {sorted(missing)}")
    print(f"{nodes} nodes with all 30 members: the same bytes")


main()
