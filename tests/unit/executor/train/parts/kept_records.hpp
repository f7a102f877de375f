#pragma once
// SPDX-License-Identifier: Apache-2.0

// The records of a rank in a folder of their own, and what they say: the parts of a trainer are tried by what they record.

#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/records/records.hpp"
#include "support/temporary_folder.hpp"

struct kept_records {
    temporary_folder folder;
    rheo::records record{folder.path.string(), rheo::rank_id{0}, false, true};

    kept_records() { record.set_reporter(true); }

    /// Lines of this kind so far.
    std::vector<nlohmann::json> of_kind(std::string const& kind)
    {
        record.flush();
        std::vector<nlohmann::json> result;
        std::istringstream lines{folder.read("metrics.jsonl")};
        for (std::string line; std::getline(lines, line);) {
            if (auto read = nlohmann::json::parse(line); read["kind"] == kind) {
                result.push_back(std::move(read));
            }
        }
        return result;
    }

    std::vector<std::string> notes()
    {
        std::vector<std::string> result;
        for (auto const& line : of_kind("note")) {
            result.push_back(line["message"]);
        }
        return result;
    }
};
