// SPDX-License-Identifier: Apache-2.0
#include "executor/records/monitor/event_file.hpp"

#include <bit>
#include <cstddef>

#include <boost/crc.hpp>

#include "rheo/trace/chakra/wire.hpp"

namespace rheo::inline v0 {

namespace {

/// CRC-32C (Castagnoli), rotated and shifted: a file that holds such sums can be summed itself.
std::uint32_t masked_crc(std::string_view data)
{
    boost::crc_optimal<32, 0x1EDC6F41U, 0xFFFFFFFFU, 0xFFFFFFFFU, true, true> crc;
    crc.process_bytes(data.data(), data.size());
    return std::rotr(static_cast<std::uint32_t>(crc.checksum()), 15) + 0xa282ead8U;
}

template <std::size_t Bytes>
void append_fixed(std::string& to, std::uint64_t value)
{
    char encoded[Bytes];
    to.append(encoded, put_fixed<Bytes>(encoded, value));
}

/// A message of Protocol Buffers, field by field in ascending order.
class message {
public:
    message& number(std::uint32_t field, std::uint64_t value) { return varint(tag_bits(field, wire_type::varint)).varint(value); }
    message& text(std::uint32_t field, std::string_view value)
    {
        varint(tag_bits(field, wire_type::delimited)).varint(value.size());
        encoded_ += value;
        return *this;
    }
    message& real(std::uint32_t field, double value)
    {
        varint(tag_bits(field, wire_type::fixed64));
        append_fixed<8>(encoded_, std::bit_cast<std::uint64_t>(value));
        return *this;
    }
    message& real(std::uint32_t field, float value)
    {
        varint(tag_bits(field, wire_type::fixed32));
        append_fixed<4>(encoded_, std::bit_cast<std::uint32_t>(value));
        return *this;
    }

    std::string_view encoded() const { return encoded_; }

private:
    message& varint(std::uint64_t value)
    {
        char encoded[longest_varint];
        encoded_.append(encoded, put_varint(encoded, value));
        return *this;
    }

    std::string encoded_;
};

// Numbers of the fields: Event { wall_time, step, file_version, summary, session_log }, Summary { value }, Summary.Value { tag, simple_value }.
constexpr std::uint32_t wall_time = 1, step_number = 2, file_version = 3, summary = 5, session_log = 7;
constexpr std::uint32_t summary_value = 1, value_tag = 1, simple_value = 2;
constexpr std::uint32_t session_status = 1;
constexpr std::uint64_t session_starts = 1;

message event(double unix_time, std::int64_t step)
{
    message result;
    result.real(wall_time, unix_time).number(step_number, static_cast<std::uint64_t>(step));
    return result;
}

}  // namespace

std::string tf_record(std::string_view data)
{
    std::string record;
    record.reserve(data.size() + 16);
    append_fixed<8>(record, data.size());
    append_fixed<4>(record, masked_crc(record));
    record += data;
    append_fixed<4>(record, masked_crc(data));
    return record;
}

std::string version_event(double unix_time)
{
    message first;
    return tf_record(first.real(wall_time, unix_time).text(file_version, "brain.Event:2").encoded());
}

std::string session_start_event(double unix_time, std::int64_t first_step)
{
    message status;
    status.number(session_status, session_starts);
    return tf_record(event(unix_time, first_step).text(session_log, status.encoded()).encoded());
}

std::string scalars_event(double unix_time, std::int64_t step, std::span<tagged_scalar const> points)
{
    message values;
    for (auto const& point : points) {
        message value;
        value.text(value_tag, point.tag).real(simple_value, static_cast<float>(point.value));
        values.text(summary_value, value.encoded());
    }
    return tf_record(event(unix_time, step).text(summary, values.encoded()).encoded());
}

}  // namespace rheo::inline v0
