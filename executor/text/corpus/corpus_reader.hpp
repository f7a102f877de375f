#pragma once
// SPDX-License-Identifier: Apache-2.0

// The documents of text files and of JSON lines, in order, as batches that threads can encode at the same time: several small documents, lines with a
// document each, or a stretch of a large document with some of what follows it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/text/corpus/byte_stream.hpp"
#include "executor/text/corpus/json_line.hpp"

namespace rheo::inline v0 {

/// A document, or a stretch of one.
struct document_part {
    std::shared_ptr<std::string const> path;
    std::string text;  ///< bytes as they are in the file; what is behind its own bytes is context
    std::size_t own = 0;
    bool begins = true;  ///< the document
    bool ends = true;
};

struct text_batch {
    std::vector<document_part> parts;
    json_lines lines;  ///< or these, and no parts
};

/// Where a large document may be cut: the last place within (0, most) of the text, or 0. See find_cut.
using cut_rule = std::function<std::size_t(std::string_view text, std::size_t most)>;

struct corpus_options {
    std::size_t batch_bytes = 1 << 20;  ///< about as large as a batch gets
    std::size_t context_bytes = 2048;   ///< behind a stretch
    cut_rule cut;                       ///< none: documents stay whole
};

class corpus_reader {
public:
    /// @throws exit_error naming the path
    corpus_reader(std::vector<std::string> const& paths, corpus_options options);

    /// The next batch; none at the end. @throws exit_error naming the file. Memory: a batch, or the largest document where they stay whole
    std::optional<text_batch> next();

    std::int64_t bytes() const { return bytes_; }  ///< that were read, unpacked
    std::size_t files() const { return files_.size(); }

private:
    corpus_options options_;
    std::vector<std::string> files_;
    std::size_t next_file_ = 0;
    std::optional<byte_stream> open_;
    std::shared_ptr<std::string const> path_;
    std::string pending_;
    bool is_lines_ = false;
    bool at_end_ = true;  ///< of the file that is open
    bool begins_ = true;
    std::int64_t line_ = 1;
    std::int64_t bytes_ = 0;

    bool open_next();
    void fill(std::size_t wanted);
    std::optional<text_batch> next_lines();
    bool next_part(document_part& part);
};

}  // namespace rheo::inline v0
