#pragma once
// SPDX-License-Identifier: Apache-2.0

// Files as one row of tokens: the bytes of text files, or llm.c's token files, with tokens of 16 or of 32 bits (token_file_form.hpp).
// Files are taken in the order of file_list.hpp; a name that ends in `.bin` is a token file. Large files are mapped, not read: when one is
// overwritten or cut in place, its tokens change under the run. `change` finds that by size and time stamp; a file that was
// replaced by another of its name is no such case, since the mapping keeps the old one.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rheo::inline v0 {

/// The bytes of a file, read or mapped.
class file_bytes {
public:
    /// @throws exit_error naming the file
    explicit file_bytes(std::string const& path);
    ~file_bytes();
    file_bytes(file_bytes const&) = delete;
    file_bytes& operator=(file_bytes const&) = delete;

    std::byte const* data() const { return mapped_ != nullptr ? static_cast<std::byte const*>(mapped_) : read_.data(); }
    std::int64_t size() const { return static_cast<std::int64_t>(size_); }

    /// What has happened to the mapped file since it was opened, if its bytes may have changed: a part of a sentence. Nothing
    /// can happen to what was read. Cost: a look at the file's status
    std::optional<std::string> change() const;

private:
    /// By which a file is known, and by which a change of its content shows.
    struct file_status {
        std::uint64_t device;
        std::uint64_t number;
        std::int64_t modified_ns;
    };

    std::string path_;
    file_status opened_{};
    void* mapped_ = nullptr;
    std::size_t size_ = 0;
    std::vector<std::byte> read_;
};

class token_files {
public:
    /// Consecutive tokens of one file.
    struct piece {
        std::int64_t first;  ///< position of its first token in the whole
        std::int64_t count;
        std::byte const* data;
        std::string path;
    };

    /// @throws exit_error naming the file and what was expected: nothing readable, a bad token file, texts and token files mixed
    explicit token_files(std::vector<std::string> const& paths);

    std::vector<piece> const& pieces() const { return pieces_; }
    bool is_text() const { return text_; }            ///< tokens are bytes
    int token_bytes() const { return token_bytes_; }  ///< of a token in the files
    std::int64_t count() const { return count_; }

    std::int32_t token(piece const& p, std::int64_t i) const;

    /// The first piece whose file was changed in place since it was opened, and what happened to it: a sentence.
    struct changed_file {
        std::size_t piece;
        std::string message;
    };
    std::optional<changed_file> change() const;

    /// Tokens [first, first + tokens) and those one further on. @pre both have the same length, and both are within the files
    void window(std::int64_t first, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const;

private:
    std::deque<file_bytes> files_;  // never moves its elements
    std::vector<piece> pieces_;
    bool text_ = true;
    int token_bytes_ = 1;
    std::int64_t count_ = 0;
};

/// The folder of the newest C++ standard library headers on this machine; what no data paths mean.
/// @throws exit_error when there is none
std::string default_data_folder();

}  // namespace rheo::inline v0
