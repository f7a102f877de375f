#pragma once
// SPDX-License-Identifier: Apache-2.0

// JSON as a stream of tokens, for files that are larger than memory should be: a reader takes what it wants and passes over the rest, and only
// one token is kept. A parser with callbacks makes a string of every key and value and parses every number; that alone takes as long as a
// gigabyte of trace may take, where nine tenths of it are of no interest.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rheo::inline v0 {

/// Puts the next bytes there and returns how many; 0 at the end.
using byte_source = std::function<std::size_t(char* to, std::size_t room)>;

enum class json_token : std::uint8_t { begin_object, end_object, begin_array, end_array, key, text, number, word, end, error };

class json_scanner {
public:
    /// @param window how many bytes are asked for at once; a token that is longer makes it larger
    explicit json_scanner(byte_source source, std::size_t window = std::size_t{1} << 18);

    /// The next token. After `end` and `error` it stays the same. Words are true, false and null, and nan and inf in their usual spellings,
    /// which profilers write for a rate without a time.
    json_token next();

    /// Passes over the rest of a value, given its first token. @returns false at an error
    bool skip(json_token first);

    /// Of a key or text what stands between the quotes, escapes resolved; of a number or word its characters. Valid until the next call. Bytes
    /// that are no UTF-8 stay as they are.
    std::string_view text() const { return text_; }

    /// Where the token begins, counted from 0.
    std::uint64_t byte() const { return token_; }

    /// Why there is no next token: `byte 12: ...`; empty as long as there is one.
    std::string const& error() const { return error_; }

private:
    enum class expected : std::uint8_t { value, value_or_end, key, key_or_end, colon, comma_or_end, nothing };

    bool more(std::size_t& keep);
    bool fill();
    int peek();
    json_token refuse(std::uint64_t byte, std::string_view why);
    json_token refuse_byte(std::string_view wanted);
    json_token open(bool object);
    json_token close(bool object);
    json_token value(int first);
    json_token quoted(json_token kind);
    bool unescape(std::size_t begin, std::size_t end);
    json_token number();
    json_token word(std::size_t begin, bool negative);
    void ended_value();

    byte_source source_;
    std::vector<char> buffer_;
    std::size_t at_ = 0;
    std::size_t size_ = 0;
    std::uint64_t before_ = 0;  ///< bytes of the file before the buffer
    std::uint64_t token_ = 0;
    std::string_view text_;
    std::string unescaped_;
    std::string error_;
    std::vector<bool> objects_;  ///< what is open, from the outside in: an object, else an array
    expected expected_ = expected::value;
};

}  // namespace rheo::inline v0
