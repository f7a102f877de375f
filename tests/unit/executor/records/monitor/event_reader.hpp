#pragma once
// SPDX-License-Identifier: Apache-2.0

// A reader of TensorBoard's event files that shares nothing with the writer: its own table of the CRC, its own decoding, and TensorBoard's rules of
// what a curve shows: files in the order of their names; a session start hides points of its step and later ones that were read before; points of a tag in
// the order in which they stand.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct read_event {
    double wall_time = 0;
    std::int64_t step = 0;
    std::string file_version{};
    int session_status = 0;
    std::vector<std::pair<std::string, float>> scalars{};
};

inline std::uint32_t crc32c(std::string const& data)
{
    static auto const table = [] {
        std::array<std::uint32_t, 256> t{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            auto c = i;
            for (int bit = 0; bit < 8; ++bit) {
                c = (c & 1U) != 0 ? 0x82F63B78U ^ (c >> 1U) : c >> 1U;
            }
            t[i] = c;
        }
        return t;
    }();
    std::uint32_t crc = 0xFFFFFFFFU;
    for (char const c : data) {
        crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFFU] ^ (crc >> 8U);
    }
    return ~crc;
}

inline std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U; }

class event_bytes {
public:
    explicit event_bytes(std::string bytes) : bytes_{std::move(bytes)} {}

    bool at_end() const { return at_ == bytes_.size(); }
    std::size_t left() const { return bytes_.size() - at_; }

    std::string take(std::size_t count)
    {
        if (count > left()) {
            throw std::runtime_error("torn");
        }
        at_ += count;
        return bytes_.substr(at_ - count, count);
    }
    template <class T>
    T fixed()
    {
        auto const text = take(sizeof(T));
        T value{};
        std::memcpy(&value, text.data(), sizeof value);  // tests run on little-endian machines, as rheo does
        return value;
    }
    std::uint64_t varint()
    {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            auto const byte = static_cast<unsigned char>(take(1)[0]);
            value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
            if (byte < 0x80U) {
                return value;
            }
        }
    }

private:
    std::string bytes_;
    std::size_t at_ = 0;
};

inline std::pair<std::string, float> read_scalar(event_bytes in)
{
    std::pair<std::string, float> scalar;
    while (!in.at_end()) {
        switch (in.varint()) {
        case 1 << 3 | 2: scalar.first = in.take(in.varint()); break;
        case 2 << 3 | 5: scalar.second = in.fixed<float>(); break;
        default: throw std::runtime_error("a field that a scalar does not have");
        }
    }
    return scalar;
}

inline read_event decode_event(event_bytes in)
{
    read_event e;
    while (!in.at_end()) {
        switch (in.varint()) {
        case 1 << 3 | 1: e.wall_time = in.fixed<double>(); break;
        case 2 << 3 | 0: e.step = static_cast<std::int64_t>(in.varint()); break;
        case 3 << 3 | 2: e.file_version = in.take(in.varint()); break;
        case 5 << 3 | 2: {
            event_bytes summary{in.take(in.varint())};
            while (!summary.at_end()) {
                if (summary.varint() != (1 << 3 | 2)) {
                    throw std::runtime_error("a summary has values only");
                }
                e.scalars.push_back(read_scalar(event_bytes{summary.take(summary.varint())}));
            }
            break;
        }
        case 7 << 3 | 2: {
            event_bytes log{in.take(in.varint())};
            if (log.varint() != (1 << 3 | 0)) {
                throw std::runtime_error("a session log has a status only");
            }
            e.session_status = static_cast<int>(log.varint());
            break;
        }
        default: throw std::runtime_error("a field that events here do not have");
        }
    }
    return e;
}

/// All whole events. @param torn out: whether bytes of a part of one follow. @throws std::runtime_error for a wrong checksum or message
inline std::vector<read_event> events_of(std::string const& bytes, bool* torn = nullptr)
{
    std::vector<read_event> events;
    event_bytes in{bytes};
    while (!in.at_end()) {
        if (in.left() < 12) {
            break;
        }
        auto const length = in.take(8);
        std::uint64_t size = 0;
        std::memcpy(&size, length.data(), sizeof size);
        if (in.fixed<std::uint32_t>() != masked(crc32c(length))) {
            throw std::runtime_error("the checksum of a length is wrong");
        }
        if (in.left() < size + 4) {
            break;
        }
        auto const data = in.take(size);
        if (in.fixed<std::uint32_t>() != masked(crc32c(data))) {
            throw std::runtime_error("the checksum of data is wrong");
        }
        events.push_back(decode_event(event_bytes{data}));
    }
    if (torn != nullptr) {
        *torn = !in.at_end();
    }
    return events;
}

inline std::vector<std::filesystem::path> event_files(std::filesystem::path const& folder)
{
    std::vector<std::filesystem::path> files;
    for (auto const& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
            files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

using shown_curves = std::map<std::string, std::vector<std::pair<std::int64_t, float>>>;

/// What TensorBoard shows of a folder.
inline shown_curves curves_of(std::filesystem::path const& folder)
{
    shown_curves curves;
    for (auto const& path : event_files(folder)) {
        std::ifstream file{path, std::ios::binary};
        auto const events = events_of({std::istreambuf_iterator<char>{file}, {}});
        if (events.empty() || events.front().file_version != "brain.Event:2") {
            throw std::runtime_error("a file begins with its version");
        }
        for (auto const& e : events) {
            if (e.session_status == 1) {
                for (auto& [tag, points] : curves) {
                    std::erase_if(points, [&](auto const& p) { return p.first >= e.step; });
                }
            }
            for (auto const& [tag, value] : e.scalars) {
                curves[tag].push_back({e.step, value});
            }
        }
    }
    return curves;
}
