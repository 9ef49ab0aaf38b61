"""A strict decoder of the protobuf that `hvdrun trace export --format perfetto` writes: unknown fields and cut messages fail.
The numbers are those of protos/perfetto/trace in Perfetto's sources."""

import struct

MESSAGE, TEXT, NUMBER, DOUBLE = "message", "text", "number", "double"
SCHEMA = {
    "Trace": {1: ("packet", "TracePacket")},
    "TracePacket": {6: ("clock_snapshot", "ClockSnapshot"), 8: ("timestamp", NUMBER), 10: ("sequence_id", NUMBER),
                    11: ("track_event", "TrackEvent"), 12: ("interned_data", "InternedData"), 13: ("sequence_flags", NUMBER),
                    60: ("track_descriptor", "TrackDescriptor")},
    "ClockSnapshot": {1: ("clocks", "Clock")},
    "Clock": {1: ("clock_id", NUMBER), 2: ("timestamp", NUMBER)},
    "TrackDescriptor": {1: ("uuid", NUMBER), 2: ("name", TEXT), 5: ("parent_uuid", NUMBER)},
    "TrackEvent": {4: ("debug_annotations", "DebugAnnotation"), 9: ("type", NUMBER), 10: ("name_iid", NUMBER),
                   11: ("track_uuid", NUMBER)},
    "DebugAnnotation": {1: ("name_iid", NUMBER), 2: ("bool_value", NUMBER), 4: ("int_value", NUMBER), 5: ("double_value", DOUBLE),
                        9: ("legacy_json_value", TEXT), 17: ("string_value_iid", NUMBER)},
    "InternedData": {2: ("event_names", "Entry"), 3: ("debug_annotation_names", "Entry"), 29: ("debug_annotation_string_values", "Entry")},
    "Entry": {1: ("iid", NUMBER), 2: ("text", TEXT)},
}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
        assert shift < 70


def decode(kind, data):
    """name -> list of values"""
    message, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        name, what = SCHEMA[kind][key >> 3]
        if key & 7 == 0:
            assert what == NUMBER, (kind, name)
            value, at = varint(data, at)
        elif key & 7 == 1:
            assert what == DOUBLE, (kind, name)
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        else:
            assert key & 7 == 2 and what not in (NUMBER, DOUBLE), (kind, name)
            size, at = varint(data, at)
            assert at + size <= len(data)
            text, at = data[at:at + size], at + size
            value = text.decode() if what == TEXT else decode(what, text)
        message.setdefault(name, []).append(value)
    return message


def events_of(data):
    """(time in ns, type, name, path of track names, arguments) of each event."""
    tracks, known, events = {}, {}, []
    for packet in decode("Trace", data)["packet"]:
        for track in packet.get("track_descriptor", []):
            tracks[track["uuid"][0]] = (track["name"][0], track.get("parent_uuid", [0])[0])
        if packet.get("sequence_flags", [0])[0] & 1:
            known = {}
        for interned in packet.get("interned_data", []):
            for kind, entries in interned.items():
                known.setdefault(kind, {}).update({entry["iid"][0]: entry["text"][0] for entry in entries})
        for event in packet.get("track_event", []):
            arguments = {}
            for annotation in event.get("debug_annotations", []):
                name = known["debug_annotation_names"][annotation.pop("name_iid")[0]]
                (what, (value,)), = annotation.items()
                arguments[name] = known["debug_annotation_string_values"][value] if what == "string_value_iid" else value
            name = known["event_names"][event["name_iid"][0]] if "name_iid" in event else ""
            assert event["track_uuid"][0] in tracks
            events.append((packet["timestamp"][0], event["type"][0], name, event["track_uuid"][0], arguments))
    return [(time, kind, name, path_of(tracks, track), arguments) for time, kind, name, track, arguments in events]


def path_of(tracks, track):
    name, parent = tracks[track]
    return (tracks[parent][0] if parent else "", name)
