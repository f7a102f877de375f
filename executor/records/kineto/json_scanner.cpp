// SPDX-License-Identifier: Apache-2.0
#include "executor/records/kineto/json_scanner.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "executor/text/utf8.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::size_t deepest = 256;
constexpr std::size_t longest_token = std::size_t{1} << 26;

bool is_space(int c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_digit(int c) { return c >= '0' && c <= '9'; }
bool is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Whether a byte ends a run of plain bytes in a text: a quote, a backslash, a control character.
constexpr auto special = [] {
    std::array<bool, 256> table{};
    for (std::size_t c = 0; c < 0x20; ++c) {
        table[c] = true;
    }
    table['"'] = true;
    table['\\'] = true;
    return table;
}();

int digit_of(char c) { return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

/// The unit of UTF-16 that four digits say; below zero when they are none.
int unit_of(char const* digits)
{
    int unit = 0;
    for (int k = 0; k < 4; ++k) {
        auto const digit = digit_of(digits[k]);
        if (digit < 0) {
            return -1;
        }
        unit = 16 * unit + digit;
    }
    return unit;
}

}  // namespace

json_scanner::json_scanner(byte_source source, std::size_t window) : source_{std::move(source)}, buffer_(std::max<std::size_t>(window, 1)) {}

/// Reads on, keeping the bytes from `keep` on, which moves with them. @returns false at the end of the file, and for a token that is too long
bool json_scanner::more(std::size_t& keep)
{
    if (keep > 0) {
        std::memmove(buffer_.data(), buffer_.data() + keep, size_ - keep);
        at_ -= keep;
        size_ -= keep;
        before_ += keep;
        keep = 0;
    }
    if (size_ == buffer_.size()) {
        if (size_ >= longest_token) {
            return false;
        }
        buffer_.resize(2 * size_);
    }
    auto const count = source_(buffer_.data() + size_, buffer_.size() - size_);
    size_ += count;
    return count > 0;
}

bool json_scanner::fill()
{
    auto keep = at_;
    return at_ < size_ || more(keep);
}

/// The next byte that is no space, which stays; below zero at the end of the file.
int json_scanner::peek()
{
    for (;;) {
        while (at_ < size_ && is_space(buffer_[at_])) {
            ++at_;
        }
        if (at_ < size_) {
            return static_cast<unsigned char>(buffer_[at_]);
        }
        if (!fill()) {
            return -1;
        }
    }
}

json_token json_scanner::refuse(std::uint64_t byte, std::string_view why)
{
    text_ = {};
    error_ = fmt::format("byte {}: {}", byte, why);
    return json_token::error;
}

/// Refuses the byte that comes next, or the end.
json_token json_scanner::refuse_byte(std::string_view wanted)
{
    auto const byte = before_ + at_;
    return refuse(byte, at_ < size_ ? fmt::format("{} where {} was expected", in_quotes({buffer_.data() + at_, 1}), wanted)
                                    : fmt::format("the file ends where {} was expected", wanted));
}

void json_scanner::ended_value() { expected_ = objects_.empty() ? expected::nothing : expected::comma_or_end; }

json_token json_scanner::open(bool object)
{
    if (objects_.size() == deepest) {
        return refuse(token_, fmt::format("nested deeper than {}", deepest));
    }
    ++at_;
    objects_.push_back(object);
    expected_ = object ? expected::key_or_end : expected::value_or_end;
    return object ? json_token::begin_object : json_token::begin_array;
}

json_token json_scanner::close(bool object)
{
    ++at_;
    objects_.pop_back();
    ended_value();
    return object ? json_token::end_object : json_token::end_array;
}

json_token json_scanner::next()
{
    text_ = {};
    if (!error_.empty()) {
        return json_token::error;
    }
    for (;;) {
        auto const c = peek();
        token_ = before_ + at_;
        switch (expected_) {
        case expected::colon:
            if (c != ':') {
                return refuse_byte("a colon");
            }
            ++at_;
            expected_ = expected::value;
            continue;
        case expected::comma_or_end:
            if (c == ',') {
                ++at_;
                expected_ = objects_.back() ? expected::key : expected::value;
                continue;
            }
            if (c != (objects_.back() ? '}' : ']')) {
                return refuse_byte(objects_.back() ? "a comma or the end of the object" : "a comma or the end of the list");
            }
            return close(objects_.back());
        case expected::key_or_end:
            if (c == '}') {
                return close(true);
            }
            [[fallthrough]];
        case expected::key: return c == '"' ? quoted(json_token::key) : refuse_byte("a key in quotes");
        case expected::value_or_end:
            if (c == ']') {
                return close(false);
            }
            [[fallthrough]];
        case expected::value: return value(c);
        case expected::nothing: return c < 0 ? json_token::end : refuse_byte("the end of the file");
        }
    }
}

json_token json_scanner::value(int first)
{
    switch (first) {
    case '{': return open(true);
    case '[': return open(false);
    case '"': return quoted(json_token::text);
    default: break;
    }
    if (first == '-' || is_digit(first)) {
        return number();
    }
    return is_letter(first) ? word(at_, false) : refuse_byte("a value");
}

json_token json_scanner::quoted(json_token kind)
{
    auto begin = at_++;
    bool escaped = false;
    for (;;) {
        while (at_ < size_ && !special[static_cast<unsigned char>(buffer_[at_])]) {
            ++at_;
        }
        if (at_ == size_) {
            if (!more(begin)) {
                return size_ >= longest_token ? refuse(token_, "a text that is too long") : refuse_byte("the rest of a text");
            }
        } else if (buffer_[at_] == '"') {
            break;
        } else if (buffer_[at_] == '\\') {
            escaped = true;
            ++at_;
            if (at_ == size_ && !more(begin)) {
                return refuse_byte("the rest of a text");
            }
            ++at_;  // a quote behind it ends nothing; what the escape says is seen when the text is whole
        } else {
            return refuse_byte("a text without control characters");
        }
    }
    auto const end = at_++;
    text_ = {buffer_.data() + begin + 1, end - begin - 1};
    if (escaped && !unescape(begin + 1, end)) {
        return json_token::error;
    }
    if (kind == json_token::key) {
        expected_ = expected::colon;
    } else {
        ended_value();
    }
    return kind;
}

/// Resolves the escapes of a text that stands in the buffer.
bool json_scanner::unescape(std::size_t begin, std::size_t end)
{
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    unescaped_.clear();
    auto const unit_at = [&](std::size_t place) {
        return place + 6 <= end && buffer_[place] == '\\' && buffer_[place + 1] == 'u' ? unit_of(&buffer_[place + 2]) : -1;
    };
    for (auto i = begin; i < end;) {
        auto const* const plain_end = static_cast<char const*>(std::memchr(buffer_.data() + i, '\\', end - i));
        auto const stop = plain_end == nullptr ? end : static_cast<std::size_t>(plain_end - buffer_.data());
        unescaped_.append(buffer_.data() + i, stop - i);
        i = stop;
        if (i == end) {
            break;
        }
        if (auto const known = letters.find(buffer_[i + 1]); known != letters.npos) {
            unescaped_ += meanings[known];
            i += 2;
            continue;
        }
        auto const unit = unit_at(i);
        auto const is_high = unit >= 0xd800 && unit < 0xdc00;
        auto const low = is_high ? unit_at(i + 6) : -1;
        if (unit < 0 || (unit >= 0xdc00 && unit < 0xe000) || (is_high && (low < 0xdc00 || low >= 0xe000))) {
            refuse(before_ + i, fmt::format("{} is no escape", in_quotes({buffer_.data() + i, std::min<std::size_t>(end - i, 6)})));
            return false;
        }
        append_utf8(unescaped_, static_cast<char32_t>(is_high ? 0x10000 + ((unit - 0xd800) << 10) + low - 0xdc00 : unit));
        i += is_high ? 12 : 6;
    }
    text_ = unescaped_;
    return true;
}

json_token json_scanner::number()
{
    auto begin = at_;
    // The next byte, or 0 at the end: no byte of a number.
    auto const now = [&]() -> char { return at_ < size_ || more(begin) ? buffer_[at_] : '\0'; };
    auto const digits = [&] {
        auto const any = is_digit(now());
        while (is_digit(now())) {
            ++at_;
        }
        return any;
    };
    if (now() == '-') {
        ++at_;
        if (is_letter(now())) {
            return word(begin, true);
        }
    }
    if (now() == '0') {
        ++at_;
    } else if (!digits()) {
        return refuse_byte("a digit");
    }
    if (now() == '.') {
        ++at_;
        if (!digits()) {
            return refuse_byte("a digit");
        }
    }
    if (now() == 'e' || now() == 'E') {
        ++at_;
        if (now() == '+' || now() == '-') {
            ++at_;
        }
        if (!digits()) {
            return refuse_byte("a digit");
        }
    }
    text_ = {buffer_.data() + begin, at_ - begin};
    ended_value();
    return json_token::number;
}

json_token json_scanner::word(std::size_t begin, bool negative)
{
    while ((at_ < size_ || more(begin)) && is_letter(buffer_[at_])) {
        ++at_;
    }
    text_ = {buffer_.data() + begin, at_ - begin};
    constexpr std::string_view words[] = {"true", "false", "null", "nan", "inf", "NaN", "Infinity"};
    auto const* const last = std::end(words);
    if (std::find(negative ? words + 3 : words, last, negative ? text_.substr(1) : text_) == last) {
        return refuse(token_, fmt::format("{} is no value", in_quotes(text_)));
    }
    ended_value();
    return json_token::word;
}

bool json_scanner::skip(json_token first)
{
    for (std::size_t depth = 0;; first = next()) {
        switch (first) {
        case json_token::begin_object:
        case json_token::begin_array: ++depth; break;
        case json_token::end_object:
        case json_token::end_array: --depth; break;
        case json_token::error: return false;
        default: break;
        }
        if (depth == 0) {
            return true;
        }
    }
}

}  // namespace rheo::inline v0
