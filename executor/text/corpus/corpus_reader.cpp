// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/corpus_reader.hpp"

#include <algorithm>

#include "executor/data/file_list.hpp"
#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

}  // namespace

corpus_reader::corpus_reader(std::vector<std::string> const& paths, corpus_options options) : options_{std::move(options)}, files_{list_files(paths)} {}

bool corpus_reader::open_next()
{
    if (next_file_ == files_.size()) {
        return false;
    }
    path_ = std::make_shared<std::string const>(files_[next_file_++]);
    open_.emplace(*path_);
    is_lines_ = has_json_lines(*path_);
    at_end_ = false;
    begins_ = true;
    line_ = 1;
    pending_.clear();
    fill(byte_order_mark.size());
    if (pending_.starts_with(byte_order_mark)) {
        pending_.erase(0, byte_order_mark.size());
    }
    return true;
}

/// Reads until so many bytes are pending, or the file ends.
void corpus_reader::fill(std::size_t wanted)
{
    while (!at_end_ && pending_.size() < wanted) {
        auto const count = open_->read(pending_, std::max(wanted - pending_.size(), std::size_t{1} << 16));
        bytes_ += static_cast<std::int64_t>(count);
        at_end_ = count == 0;
    }
}

std::optional<text_batch> corpus_reader::next()
{
    text_batch batch;
    std::size_t size = 0;
    for (;;) {
        if (at_end_ && pending_.empty() && begins_) {
            if (!open_next()) {
                break;
            }
            if (is_lines_ && !batch.parts.empty()) {
                break;  // lines are a batch of their own
            }
        }
        if (is_lines_) {
            if (!batch.parts.empty()) {
                break;
            }
            if (auto lines = next_lines()) {
                return lines;
            }
            continue;
        }
        document_part part;
        if (next_part(part)) {
            size += part.text.size();
            batch.parts.push_back(std::move(part));
            if (size >= options_.batch_bytes / 2 || batch.parts.size() == 4096) {
                break;
            }
        }
    }
    return batch.parts.empty() ? std::nullopt : std::optional{std::move(batch)};
}

std::optional<text_batch> corpus_reader::next_lines()
{
    std::size_t end = 0;
    for (auto wanted = options_.batch_bytes;; wanted *= 2) {  // until a line ends
        fill(wanted);
        end = at_end_ ? pending_.size() : pending_.rfind('\n') + 1;
        if (end > 0 || at_end_) {
            break;
        }
    }
    text_batch batch{{}, {path_, pending_.substr(0, end), line_}};
    pending_.erase(0, end);
    line_ += std::count(batch.lines.text.begin(), batch.lines.text.end(), '\n');
    begins_ = true;
    return end == 0 ? std::nullopt : std::optional{std::move(batch)};
}

/// Returns false when the file held nothing more.
bool corpus_reader::next_part(document_part& part)
{
    auto const context = options_.context_bytes;
    for (auto wanted = options_.batch_bytes + context;; wanted *= 2) {
        fill(wanted);
        if (at_end_) {
            break;
        }
        auto const own = options_.cut ? options_.cut(pending_, pending_.size() - context) : 0;
        if (own == 0) {
            continue;
        }
        auto end = own + context;
        while (end > own && is_utf8_continuation(pending_[end])) {
            --end;
        }
        part = {path_, pending_.substr(0, end), own, begins_, false};
        pending_.erase(0, own);
        begins_ = false;
        return true;
    }
    auto const is_one = !pending_.empty() || !begins_;  // an empty file is no document
    auto const own = pending_.size();
    part = {path_, std::move(pending_), own, begins_, true};
    pending_.clear();
    begins_ = true;
    return is_one;
}

}  // namespace rheo::inline v0
