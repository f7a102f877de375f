// SPDX-License-Identifier: Apache-2.0
#include "judge.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

namespace campaign {

namespace {

using json = nlohmann::json;

std::string text_of(std::filesystem::path const& path)
{
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

std::string words(auto const&... parts)
{
    std::ostringstream text;
    (text << ... << parts);
    return text.str();
}

bool after_the_vote(std::string const& phase) { return phase == "commit" || phase == "idle"; }

/// The attempt that survivors are in when they miss a rank that died there: behind the vote it is the next one.
std::pair<int, int> missed_in(death const& d)
{
    if (!after_the_vote(d.phase)) {
        return {d.step, d.attempt};
    }
    bool const redone = d.step == 0 && d.attempt == 0;
    return redone ? std::pair{0, 1} : std::pair{d.step + 1, 0};
}

}  // namespace

evidence read_evidence(std::filesystem::path const& folder, std::string output, ending end)
{
    evidence found{std::move(end), std::move(output)};
    try {
        std::istringstream lines{found.output};
        for (std::string line; std::getline(lines, line);) {
            death d{};
            char phase[32] = "";
            auto const at = line.find("rheo: rank ");
            if (at != line.npos &&
                std::sscanf(line.c_str() + at, "rheo: rank %d ends itself in step %d, attempt %d, at '%31[a-z_]'", &d.rank, &d.step, &d.attempt, phase) == 4) {
                d.phase = phase;
                found.deaths.push_back(d);
            }
        }
        if (std::filesystem::exists(folder / "result.json")) {
            auto const result = json::parse(text_of(folder / "result.json"));
            found.has_result = true;
            found.digest = result.at("digest");
            found.message = result.at("message");
            found.exit_code = result.at("exit_code");
            found.pairs_by_survivors = result.at("pairs_by_survivors");
        }
        if (std::filesystem::exists(folder / "report.json")) {
            auto const report = json::parse(text_of(folder / "report.json"));
            if (!report.at("digest").is_null() && report.at("digest") != found.digest) {
                found.unreadable = "report.json has another digest than the result";
            }
            found.energy = report.value("energy_J", 0.0);
            found.validation = report.value("validation_loss", json{}).dump();
            for (auto const& r : report.at("recoveries")) {
                found.recoveries.push_back({r.at("step"), r.at("attempt"), r.at("lost"), r.at("pairs_total"), r.at("pairs_salvaged"), r.at("pairs_missing"),
                                            r.at("left"), r.at("communicators"), r.at("memory_bytes")});
            }
        } else {
            found.unreadable = "there is no report.json";
        }
        std::istringstream metrics{text_of(folder / "metrics.jsonl")};
        for (std::string line; std::getline(metrics, line);) {
            auto const object = json::parse(line, nullptr, false);  // a line may be torn where its writer was killed
            if (object.is_object() && (object.at("kind") == "step" || object.at("kind") == "redo")) {
                found.attempts[{object.at("step"), object.at("attempt")}] = object.at("pairs_computed");
                found.planned += object.contains("planned_energy_J") ? 1 : 0;
            }
        }
    } catch (std::exception const& error) {
        found.unreadable = error.what();
    }
    return found;
}

std::vector<std::string> faults_of(job_case const& what, evidence const& found, reference const& expected)
{
    std::vector<std::string> wrong;
    if (!found.end.in_time) {
        wrong.push_back(words("hangs: not done after ", found.end.duration.count(), " s\n", found.end.stacks));
        return wrong;
    }
    if (found.end.excluded_from_job > 0) {
        wrong.push_back(words(found.end.excluded_from_job, " processes stayed behind"));
    }
    int const code = what.survives ? 0 : 6;
    if (found.end.exit_code != code) {
        wrong.push_back(words("mpirun ended with ", found.end.exit_code, ", expected ", code));
    }
    if (!found.unreadable.empty()) {
        wrong.push_back("records: " + found.unreadable);
    }
    if (!found.has_result) {
        wrong.push_back("no rank wrote a result");
        return wrong;
    }
    if (found.exit_code != code) {
        wrong.push_back(words("the job says exit code ", found.exit_code, " ('", found.message, "'), expected ", code));
    }
    if (!what.survives) {
        if (!found.message.starts_with("state lost: no survivor holds a copy of layer ")) {
            wrong.push_back("the sentence of a lost state is: " + found.message);
        }
        return wrong;
    }
    if (!expected.digest.empty() && found.digest != expected.digest) {
        wrong.push_back(words("digest ", found.digest, ", expected ", expected.digest));
    }

    if (!expected.validation.empty() && found.validation != expected.validation) {
        wrong.push_back(words("validation loss ", found.validation, ", expected ", expected.validation));
    }

    if ((found.energy > 0) != what.where.clocks) {
        wrong.push_back(words("the report has ", found.energy, " J"));
    }
    // The first attempt is the missing part of the first step, as those after a recovery are: no whole step that was planned.
    if (auto const attempts = static_cast<int>(found.attempts.size());
        found.planned < (what.where.clocks ? attempts - 1 - static_cast<int>(found.recoveries.size()) : 0)) {
        wrong.push_back(words("of ", attempts, " attempts only ", found.planned, " had clocks of a plan"));
    }

    // What is recomputed is what is missing: in the last section of an attempt as many contributions are made
    // as the attempt's last recovery recorded, and all of them where there was none.
    for (auto const& r : found.recoveries) {
        bool const computes = r.step < what.steps;
        if (r.pairs_salvaged + r.pairs_missing != r.pairs_total || (computes ? expected.pairs != 0 && r.pairs_total != expected.pairs : r.pairs_total != 0)) {
            wrong.push_back(words("the recovery in step ", r.step, " kept ", r.pairs_salvaged, " and missed ", r.pairs_missing, " of ", r.pairs_total,
                                  " pairs; a step has ", expected.pairs));
        }
    }
    for (int step = 0; step < what.steps; ++step) {
        for (int attempt = 0; attempt < (step == 0 ? 2 : 1); ++attempt) {
            auto const place = found.attempts.find({step, attempt});
            if (place == found.attempts.end()) {
                wrong.push_back(words("metrics.jsonl does not have step ", step, ", attempt ", attempt));
                continue;
            }
            auto pairs = expected.pairs;
            for (auto const& r : found.recoveries) {
                if (r.step == step && r.attempt == attempt) {
                    pairs = r.pairs_missing;
                }
            }
            if (expected.pairs != 0 && place->second != pairs) {
                wrong.push_back(words("step ", step, ", attempt ", attempt, ": ", place->second, " contributions were made where ", pairs, " were missing"));
            }
        }
    }
    auto const attempts = static_cast<std::size_t>(what.steps) + 1;
    if (found.attempts.size() != attempts) {
        wrong.push_back(words(found.attempts.size(), " attempts are recorded, expected ", attempts));
    }
    return wrong;
}

std::vector<std::string> faults_of_memory(std::filesystem::path const& folder, int ranks)
{
    std::vector<std::string> wrong;
    for (int rank = 0; rank < ranks; ++rank) {
        auto const file = json::parse(text_of(folder / "ranks" / (std::to_string(rank) + ".json")), nullptr, false);
        auto const number = [&](std::string const& key) { return file.is_object() ? file.value(key, std::int64_t{-1}) : -1; };
        for (std::string const part :
             {"master_parameters", "moments", "stored_parameters", "accumulators", "reduced_gradients", "activations", "recompute_buffer"}) {
            auto const measured = number("measured_" + part + "_bytes");
            auto const planned = number("planned_" + part + "_bytes");
            if (measured < 0 || measured != planned || (part == "activations" && measured == 0)) {
                wrong.push_back(words("rank ", rank, " has ", measured, " bytes of ", part, ", the plan says ", planned));
            }
        }
    }
    return wrong;
}

std::vector<std::string> missed(job_case const& what, evidence const& found)
{
    std::vector<std::string> wrong;
    std::size_t lost = 0;
    for (auto const& r : found.recoveries) {
        lost += r.lost.size();
    }
    if (found.deaths.size() != what.faults.size() || (what.survives && lost != what.faults.size())) {
        wrong.push_back(words(what.faults.size(), " faults, but ", found.deaths.size(), " ranks ended themselves and ", lost, " are missed in recoveries"));
    }
    for (auto const& f : what.faults) {
        auto const d = std::find_if(found.deaths.begin(), found.deaths.end(), [&](death const& x) {
            return x.rank == f.rank && x.phase == f.phase && x.step == f.step && (f.attempt < 0 || x.attempt == f.attempt);
        });
        if (d == found.deaths.end()) {
            wrong.push_back(words("rank ", f.rank, " did not end itself in step ", f.step, " at ", f.phase));
            continue;
        }
        auto const place = missed_in(*d);
        bool const recorded = std::any_of(found.recoveries.begin(), found.recoveries.end(), [&](recovery const& r) {
            return std::pair{r.step, r.attempt} == place && std::find(r.lost.begin(), r.lost.end(), f.rank) != r.lost.end();
        });
        if (!recorded) {
            wrong.push_back(words("no recovery in step ", place.first, ", attempt ", place.second, " has lost rank ", f.rank));
        }
    }
    return wrong;
}

}  // namespace campaign
