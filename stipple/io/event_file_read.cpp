// Event files, the reading half.

#include <bit>

#include "stipple/core/error.h"
#include "stipple/io/common/protobuf_reader.h"
#include "stipple/io/common/record.h"
#include "stipple/io/event_file.h"

namespace stipple::io {
namespace {

using Type = ProtobufField::Type;

constexpr std::string_view kEventVersions = "brain.Event:";  // how all of them begin

// Of a `oneof` the last one counts.
void read_value(const ProtobufField& message, Event& event) {
    enum { none, is_scalar, is_image } kind = none;
    EventScalar scalar;
    EventImage image;
    ProtobufReader reader(message.bytes, message.offset);
    for (ProtobufField field; reader.next(field);) {
        if (field.is(1, Type::bytes)) {
            scalar.tag = field.text();
        } else if (field.is(2, Type::four_bytes)) {
            scalar.value = std::bit_cast<float>(static_cast<uint32_t>(field.value));
            kind = is_scalar;
        } else if (field.is(4, Type::bytes)) {
            kind = is_image;
            ProtobufReader inner(field.bytes, field.offset);
            for (ProtobufField part; inner.next(part);) {
                if (part.is(1, Type::varint)) image.height = static_cast<int32_t>(part.value);
                if (part.is(2, Type::varint)) image.width = static_cast<int32_t>(part.value);
                if (part.is(3, Type::varint)) image.colorspace = static_cast<int32_t>(part.value);
                if (part.is(4, Type::bytes)) image.file.assign(part.bytes.begin(), part.bytes.end());
            }
        }
    }
    if (kind == is_image) {
        image.tag = std::move(scalar.tag);
        event.images.push_back(std::move(image));
    } else if (kind == is_scalar) {
        event.scalars.push_back(std::move(scalar));
    }
}

Event read_event(std::span<const std::byte> message, int64_t offset) {
    Event event;
    ProtobufReader reader(message, offset);
    for (ProtobufField field; reader.next(field);) {
        if (field.is(1, Type::eight_bytes)) event.wall_time = std::bit_cast<double>(field.value);
        if (field.is(2, Type::varint)) event.step = static_cast<int64_t>(field.value);
        if (field.is(3, Type::bytes)) event.version = field.text();
        if (field.is(5, Type::bytes)) {
            ProtobufReader summary(field.bytes, field.offset);
            for (ProtobufField value; summary.next(value);)
                if (value.is(1, Type::bytes)) read_value(value, event);
        }
    }
    return event;
}

}  // namespace

EventFile parse_events(ByteReader& reader) {
    constexpr const char* kNoEvents = "not an event file: it must begin with a record of its version";
    EventFile file;
    while (!reader.at_end()) {
        const int64_t begin = reader.offset();
        const bool is_first = file.events.empty();
        std::string_view damage;
        const std::vector<std::byte> message = read_record(reader, damage);
        if (!damage.empty()) {
            // A file that is cut where it begins is one that was just made; with a wrong checksum there it is no event
            // file, and not ours to repair.
            if (is_first && damage != kRecordCut) throw Error(ErrorCode::bad_file, kNoEvents);
            file.damage = fmt::format("{} at byte {}", damage, begin);
            break;
        }
        Event event = read_event(message, begin + kRecordHead);
        if (is_first && event.version.rfind(kEventVersions, 0) != 0) throw Error(ErrorCode::bad_file, kNoEvents);
        event.begin = begin;
        file.events.push_back(std::move(event));
        file.whole_bytes = reader.offset();
    }
    return file;
}

EventFile load_events(const std::string& path) {
    try {
        FileSource source(path);
        ByteReader reader(source);
        return parse_events(reader);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

}  // namespace stipple::io
