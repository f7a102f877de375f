#pragma once
// SPDX-License-Identifier: Apache-2.0

// What one member does of a message, a sum or a gathering: chunks go out to some, and chunks of others come in, to be kept or to be combined. It is advanced
// bit by bit, never waits, and is done when all has come in and all that went out was taken.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "room.hpp"

namespace standin {

class operation {
public:
    explicit operation(description const& what) : what_{what} {}

    void goes_out(int to, void const* from) { out_.push_back({to, static_cast<std::byte const*>(from)}); }
    void comes_in(int from, void* to) { in_.push_back({from, static_cast<std::byte*>(to)}); }
    /// This member's own block, copied.
    void keeps(void const* own, void* to) { own_ = {static_cast<std::byte const*>(own), static_cast<std::byte*>(to)}; }
    /// What comes in and this member's own block become one; it may stand where its own does.
    void combines(void const* own, void* total) { keeps(own, total), is_combined_ = true; }

    description const& what() const { return what_; }
    /// One of the two would put its chunks between those of the other.
    bool shares_channel(operation const& other) const;

    /// Does what can be done now. Whether it is all. @param eager a message is all done when it has gone out
    bool advance(room const& all, bool eager);
    /// Ends it: what it has not yet written becomes 0xff.
    void poison();

private:
    struct outgoing {
        int to;
        std::byte const* data;
        std::uint64_t chunks = 0;  ///< put
    };
    struct incoming {
        int from;
        std::byte* data;
        std::uint64_t chunks = 0;  ///< taken
    };
    struct block {
        std::byte const* from = nullptr;
        std::byte* to = nullptr;
    };

    std::uint64_t chunks() const { return what_.bytes == 0 ? 1 : (what_.bytes + channel::chunk - 1) / channel::chunk; }
    std::uint64_t begin_of(std::uint64_t chunk) const;
    std::size_t bytes_of(std::uint64_t chunk) const { return static_cast<std::size_t>(begin_of(chunk + 1) - begin_of(chunk)); }

    bool put_next(outgoing& o, room const& all) const;
    bool take_next(incoming& i, room const& all) const;
    bool combine_next(room const& all);
    bool keep();
    bool is_filled(incoming const& i, room const& all) const;
    void poison_from(std::byte* data, std::uint64_t chunk) const;

    description what_;
    std::vector<outgoing> out_;
    std::vector<incoming> in_;
    block own_;
    bool is_combined_ = false;
    std::uint64_t kept_ = 0;  ///< chunks of the own block, or of the total
};

/// Operations that run at once, but for those that have a channel in common: these run in the order of issue.
class operations {
public:
    explicit operations(bool grouped = false) : is_group_{grouped} {}
    void add(operation some) { all_.push_back({std::move(some)}); }

    bool advance(room const& all, bool eager);
    void poison();

    std::string name() const { return is_group_ ? "exchange" : name_of(all_.front().what.what().what); }
    std::uint64_t bytes() const;

private:
    struct member {
        operation what;
        bool is_done = false;
    };
    std::vector<member> all_{};
    bool is_group_;
};

}  // namespace standin
