// SPDX-License-Identifier: Apache-2.0
#include "runtime/data.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "rheo/tensor/random.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "rheo: token files are little-endian and read as they are");

constexpr std::int64_t header_bytes = 1024;  // 256 x int32
constexpr std::int64_t mapped_from_bytes = 1 << 20;

[[noreturn]] void refuse(std::string const& sentence) { throw data_error{"data: " + sentence}; }

[[noreturn]] void refuse_call(std::string const& path, int code)
{
    refuse(fmt::format("'{}' cannot be read: {}", path, std::strerror(code)));
}

bool is_token_file(std::string_view path) { return path.ends_with(".bin"); }

class file_handle {
public:
    explicit file_handle(std::string const& path) : descriptor_{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}
    {
        if (descriptor_ < 0) {
            refuse_call(path, errno);
        }
    }
    ~file_handle() { ::close(descriptor_); }
    file_handle(file_handle const&) = delete;
    file_handle& operator=(file_handle const&) = delete;
    int get() const { return descriptor_; }

private:
    int descriptor_;
};

/// The bytes of a file, read or mapped.
class file_bytes {
public:
    explicit file_bytes(std::string const& path)
    {
        file_handle const file(path);
        struct stat status {};
        if (::fstat(file.get(), &status) != 0) {
            refuse_call(path, errno);
        }
        if (!S_ISREG(status.st_mode)) {
            refuse(fmt::format("'{}' is neither a file nor a folder", path));
        }
        size_ = static_cast<std::size_t>(status.st_size);
        if (status.st_size >= mapped_from_bytes) {
            auto* const address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
            if (address == MAP_FAILED) {
                refuse_call(path, errno);
            }
            mapped_ = address;
            return;
        }
        read_.resize(size_);
        std::size_t done = 0;
        while (done < size_) {
            auto const count = ::read(file.get(), read_.data() + done, size_ - done);
            if (count < 0 && errno == EINTR) {
                continue;
            }
            if (count < 0) {
                refuse_call(path, errno);
            }
            if (count == 0) {
                refuse(fmt::format("'{}' became shorter while it was read", path));
            }
            done += static_cast<std::size_t>(count);
        }
    }
    ~file_bytes()
    {
        if (mapped_ != nullptr) {
            ::munmap(mapped_, size_);
        }
    }
    file_bytes(file_bytes const&) = delete;
    file_bytes& operator=(file_bytes const&) = delete;

    std::byte const* data() const { return mapped_ != nullptr ? static_cast<std::byte const*>(mapped_) : read_.data(); }
    std::int64_t size() const { return static_cast<std::int64_t>(size_); }

private:
    void* mapped_ = nullptr;
    std::size_t size_ = 0;
    std::vector<std::byte> read_;
};

/// Checks the header of a token file. Returns its number of tokens.
std::int64_t check_token_file(file_bytes const& file, std::string const& path)
{
    if (file.size() < header_bytes) {
        refuse(fmt::format("'{}' is cut off: a token file begins with a header of {} bytes, this one has {}", path, header_bytes, file.size()));
    }
    std::array<std::int32_t, 3> header{};
    std::memcpy(header.data(), file.data(), sizeof header);
    if (header[0] != 20240520) {
        refuse(fmt::format("'{}' is no token file: it begins with the number {}, expected 20240520 (a text must not be called .bin)", path, header[0]));
    }
    if (header[1] != 1) {
        refuse(fmt::format("'{}' is a token file of version {}, expected 1", path, header[1]));
    }
    if (header[2] <= 0) {
        refuse(fmt::format("'{}' says that it holds {} tokens, expected at least 1", path, header[2]));
    }
    auto const expected = header_bytes + 2 * std::int64_t{header[2]};
    if (file.size() != expected) {
        refuse(fmt::format("'{}' says that it holds {} tokens, which are {} bytes with the header, but it has {} bytes", path, header[2], expected, file.size()));
    }
    return header[2];
}

/// The files below a folder in the order of their paths, hidden ones left out.
void list_folder(fs::path const& folder, std::vector<std::string>& out)
{
    std::error_code error;
    auto const before = out.size();
    auto entry = fs::recursive_directory_iterator(folder, error);
    while (!error && entry != fs::recursive_directory_iterator()) {
        auto const hidden = entry->path().filename().native().starts_with('.');
        auto const status = entry->status(error);
        if (error && error != std::errc::no_such_file_or_directory) {
            break;
        }
        error.clear();  // a link that leads nowhere is no file
        if (hidden && fs::is_directory(status)) {
            entry.disable_recursion_pending();
        } else if (!hidden && fs::is_regular_file(status)) {
            out.push_back(entry->path().string());
        }
        entry.increment(error);
    }
    if (error) {
        refuse(fmt::format("the folder '{}' cannot be read: {}", folder.string(), error.message()));
    }
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
}

std::vector<std::string> list_files(std::vector<std::string> const& paths)
{
    std::vector<std::string> files;
    for (auto const& path : paths) {
        std::error_code error;
        auto const status = fs::status(path, error);
        if (!fs::exists(status)) {
            refuse(fmt::format("'{}' does not exist", path));
        }
        if (!fs::is_directory(status)) {
            files.push_back(path);
            continue;
        }
        auto const before = files.size();
        list_folder(path, files);
        if (files.size() == before) {
            refuse(fmt::format("the folder '{}' holds no files", path));
        }
    }
    return files;
}

/// The next 64 bits of a fraction times count, without bias that matters: floor(fraction / 2^64 * count).
std::int64_t scaled(std::uint64_t fraction, std::int64_t count)
{
    __extension__ using wide = unsigned __int128;
    return static_cast<std::int64_t>((static_cast<wide>(fraction) * static_cast<std::uint64_t>(count)) >> 64);
}

}  // namespace

std::string default_data_folder()
{
    // The newest of /usr/include/c++/<version>: the compiler's own when rheo was built on this machine.
    fs::path best;
    std::vector<long> best_version;
    std::error_code error;
    for (fs::directory_iterator entry("/usr/include/c++", error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
        std::vector<long> version;
        std::string part;
        for (char const c : entry->path().filename().string() + '.') {
            if (c == '.') {
                version.push_back(std::strtol(part.c_str(), nullptr, 10));
                part.clear();
            } else {
                part += c;
            }
        }
        if (entry->is_directory(error) && version > best_version) {
            best = entry->path();
            best_version = version;
        }
    }
    if (best.empty()) {
        refuse("there are no C++ standard library headers in /usr/include/c++ to train on; name files or folders with --data");
    }
    return best.string();
}

struct dataset::impl {
    /// Consecutive tokens of one file.
    struct piece {
        std::int64_t first;  ///< position of its first token in the whole
        std::int64_t count;
        std::byte const* data;
        std::string path;
    };

    std::deque<file_bytes> files;  // never moves its elements
    std::vector<piece> pieces;
    bool text = true;
    std::int64_t total = 0;
    std::int64_t training = 0;  ///< the tokens from here on are the validation split
    microbatch_shape shape;
    double entropy = 0;
    state_digest digest;

    void open(std::vector<std::string> const& paths)
    {
        for (auto const& path : paths) {
            auto const is_tokens = is_token_file(path);
            if (!pieces.empty() && is_tokens == text) {
                refuse(fmt::format("'{}' is a {} file, but '{}' is a {} file; a run takes one kind", path, is_tokens ? "token" : "text",
                                   pieces.front().path, text ? "text" : "token"));
            }
            auto const& file = files.emplace_back(path);
            if (is_tokens) {
                auto const count = check_token_file(file, path);
                pieces.push_back({total, count, file.data() + header_bytes, path});
            } else if (file.size() > 0) {
                pieces.push_back({total, file.size(), file.data(), path});
            } else {
                files.pop_back();
                if (paths.size() == 1) {
                    refuse(fmt::format("'{}' is empty", path));
                }
                continue;
            }
            text = !is_tokens;
            total += pieces.back().count;
        }
        if (pieces.empty()) {
            refuse("all files are empty");
        }
    }

    std::int32_t token_of(piece const& p, std::int64_t i) const
    {
        if (text) {
            return std::to_integer<std::int32_t>(p.data[i]);
        }
        std::uint16_t token = 0;
        std::memcpy(&token, p.data + 2 * i, 2);
        return token;
    }

    void split(double validation_fraction)
    {
        auto const validation = static_cast<std::int64_t>(std::floor(static_cast<double>(total) * validation_fraction));
        training = total - validation;
        for (auto const& [name, count] : {std::pair{"training", training}, std::pair{"validation", validation}}) {
            if (count < shape.tokens + 1) {
                refuse(fmt::format("the {} split has {} tokens of {} in all, but one sequence takes {}", name, count, total, shape.tokens + 1));
            }
        }
    }

    /// One pass: tokens within the vocabulary, entropy of the training split, digest.
    void take_stock(int vocabulary)
    {
        std::vector<std::int64_t> counts(65536);
        std::vector<std::uint32_t> words;  // tokens as they lie in memory, four bytes to a word
        std::int64_t first_word = 0;
        std::uint32_t word = 0;
        int filled = 0;
        auto const bits = text ? 8 : 16;
        auto const hash = [&] {
            digest += digest_of("tokens", tensor_role::parameter, first_word, words);
            first_word += static_cast<std::int64_t>(words.size());
            words.clear();
        };
        for (auto const& p : pieces) {
            for (std::int64_t i = 0; i < p.count; ++i) {
                auto const token = token_of(p, i);
                if (token >= vocabulary) {
                    refuse(fmt::format("'{}' has the token {} at position {}, but model.vocabulary = {} ends before it", p.path, token, i, vocabulary));
                }
                if (p.first + i < training) {
                    ++counts[static_cast<std::size_t>(token)];
                }
                word |= static_cast<std::uint32_t>(token) << filled;
                filled = (filled + bits) % 32;
                if (filled == 0) {
                    words.push_back(std::exchange(word, 0U));
                    if (words.size() == 4096) {
                        hash();
                    }
                }
            }
        }
        words.push_back(word);
        for (auto const number : {total, training, std::int64_t{bits}}) {
            words.push_back(static_cast<std::uint32_t>(number));
            words.push_back(static_cast<std::uint32_t>(number >> 32));
        }
        hash();
        for (auto const count : counts) {
            if (count > 0) {
                auto const p = static_cast<double>(count) / static_cast<double>(training);
                entropy -= p * std::log(p);
            }
        }
    }

    /// Tokens [first, first + tokens) and those one further on.
    void window(std::int64_t first, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const
    {
        auto found = std::upper_bound(pieces.begin(), pieces.end(), first, [](std::int64_t at, piece const& p) { return at < p.first; });
        auto p = *--found;
        auto const count = static_cast<std::int64_t>(tokens.size());
        for (std::int64_t i = 0; i <= count; ++i) {
            while (first + i >= p.first + p.count) {
                p = *++found;
            }
            auto const token = token_of(p, first + i - p.first);
            if (i < count) {
                tokens[static_cast<std::size_t>(i)] = token;
            }
            if (i > 0) {
                targets[static_cast<std::size_t>(i - 1)] = token;
            }
        }
    }

    /// Fills one microbatch; `start` gives the first position of a sequence out of `positions`.
    template <class Start>
    void fill(std::int64_t begin, std::int64_t end, std::span<std::int32_t> tokens, std::span<std::int32_t> targets, Start start) const
    {
        auto const length = static_cast<std::size_t>(shape.tokens);
        expects(tokens.size() == static_cast<std::size_t>(rows(shape)) && targets.size() == tokens.size(),
                "a microbatch has sequences x tokens tokens and as many targets");
        for (int q = 0; q < shape.sequences; ++q) {
            auto const from = static_cast<std::size_t>(q) * length;
            window(begin + scaled(start(q), end - begin - shape.tokens), tokens.subspan(from, length), targets.subspan(from, length));
        }
    }
};

dataset::dataset(data_config const& config, int vocabulary, microbatch_shape shape)
{
    auto const made = std::make_shared<impl>();
    made->shape = shape;
    made->open(list_files(config.paths.empty() ? std::vector{default_data_folder()} : config.paths));
    made->split(config.validation_fraction);
    made->take_stock(vocabulary);
    impl_ = made;
}

void dataset::training_microbatch(std::uint64_t seed, step_id step, microbatch_id microbatch, std::span<std::int32_t> tokens,
                                  std::span<std::int32_t> targets) const
{
    // No operation of a model has layer -1, so dropout never draws from this stream.
    auto const stream = stream_of({.seed = seed, .step = step, .microbatch = microbatch, .layer = layer_id{-1}, .op = op_id{-1}});
    impl_->fill(0, impl_->training, tokens, targets, [&](int sequence) {
        auto const at = 2 * static_cast<std::uint64_t>(sequence);
        return std::uint64_t{random_word(stream, at)} << 32 | random_word(stream, at + 1);
    });
}

void dataset::validation_microbatch(microbatch_id microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const
{
    // Multiples of the golden ratio: the first n of them are evenly spread for every n.
    impl_->fill(impl_->training, impl_->total, tokens, targets, [&](int sequence) {
        auto const nth = static_cast<std::uint64_t>(microbatch.value) * static_cast<std::uint64_t>(impl_->shape.sequences) + static_cast<std::uint64_t>(sequence);
        return nth * 0x9e3779b97f4a7c15U;
    });
}

state_digest dataset::digest() const { return impl_->digest; }
std::int64_t dataset::training_tokens() const { return impl_->training; }
std::int64_t dataset::validation_tokens() const { return impl_->total - impl_->training; }
double dataset::unigram_entropy() const { return impl_->entropy; }
bool dataset::is_text() const { return impl_->text; }

std::string dataset::description() const
{
    auto const& d = *impl_;
    return fmt::format("{} {} file{}, {} {} to train on and {} to validate", d.pieces.size(), d.text ? "text" : "token", d.pieces.size() == 1 ? "" : "s",
                       d.training, d.text ? "bytes" : "tokens", d.total - d.training);
}

}  // namespace rheo::inline v0
