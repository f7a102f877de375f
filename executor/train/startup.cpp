// SPDX-License-Identifier: Apache-2.0
#include "executor/train/startup.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_resume.hpp"
#include "executor/config/toml.hpp"
#include "executor/faults/fence.hpp"
#include "executor/mpi/cuda_support.hpp"
#include "executor/os/boot_id.hpp"
#include "executor/records/records.hpp"
#include "executor/state/collectives.hpp"
#include "executor/train/local_start.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

std::filesystem::path nonce_of(std::filesystem::path const& folder, launch_id launch) { return folder / fmt::format(".launch-{}", launch.value); }

/// All ranks compare what must be the same; a mixture is refused with the line that differs.
startup_error compare_lines(mpi::messenger& messages, std::vector<fingerprint_line> const& lines)
{
    std::vector<std::int64_t> hashes;
    for (auto const& line : lines) {
        hashes.push_back(static_cast<std::int64_t>(hash_text(line.value)));
    }
    auto const all = all_gather(messages, hashes);
    auto const& members = messages.members().members;
    for (std::size_t r = 0; r < all.size(); ++r) {
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (all[r].size() != lines.size() || all[0].size() != lines.size()) {
                return {exit_code::environment, fmt::format("rank {} and rank {} are of different builds: all ranks must have the same for the same bits",
                                                            members[r].value, members[0].value)};
            }
            if (all[r][i] != all[0][i]) {  // found alike by all, so all print what they have
                auto const values = gather_texts(messages, lines[i].value);
                return {exit_code::environment, fmt::format("{} is {} on rank {} and {} on rank {}: all ranks must have the same", lines[i].name, values[0],
                                                            members[0].value, values[r], members[r].value)};
            }
        }
    }
    return {};
}

/// Names the steady clock that this process reads: processes with the same name read the same one.
std::int64_t steady_clock_name()
{
    std::error_code unknown;  // a kernel without namespaces of time has one clock
    return static_cast<std::int64_t>(hash_text(boot_id() + std::filesystem::read_symlink("/proc/self/ns/time", unknown).string()));
}

/// The first member looks at the run folder and names the launch; the others check that they see the same folder.
startup_error agree_on_launch(mpi::messenger& messages, std::filesystem::path const& folder, launch_info& launch)
{
    bool const first = messages.members().members.front() == messages.members().self;
    std::vector<std::int64_t> words(4);
    using clock = std::chrono::steady_clock;
    auto const own_clock = steady_clock_name();
    if (first) {
        std::random_device random;
        launch.launch.value = (std::uint64_t{random()} << 31) ^ random();
        launch.last = last_generation(folder);
        std::ofstream{nonce_of(folder, launch.launch)} << "rheo\n";
        words = {static_cast<std::int64_t>(launch.launch.value), launch.last.value, clock::now().time_since_epoch() / std::chrono::nanoseconds{1}, own_clock};
    }
    broadcast(messages, words);
    auto const launched = words[3] == own_clock ? clock::time_point{std::chrono::nanoseconds{words[2]}} : clock::now();
    launch = {{static_cast<std::uint64_t>(words[0])}, launched, generation_id{static_cast<std::int32_t>(words[1])}};
    step_scalars missing{{}, {std::filesystem::exists(nonce_of(folder, launch.launch)) ? 0 : 1}};
    all_reduce(messages, missing);
    if (first) {
        std::filesystem::remove(nonce_of(folder, launch.launch));
    }
    if (missing.sums.front() != 0) {
        return {exit_code::environment, fmt::format("{} of {} ranks do not see the run folder {}: it must be one folder shared by all ranks",
                                                    missing.sums.front(), messages.members().members.size(), folder.string())};
    }
    return {};
}

/// By whose permission clocks are set, all ranks in one sentence, the most frequent first; empty: they are left alone.
std::string message_about_clocks(mpi::messenger& messages, std::string const& mine)
{
    std::vector<std::pair<std::int64_t, std::string>> counts;
    for (auto const& text : gather_texts(messages, mine)) {
        auto const found = std::find_if(counts.begin(), counts.end(), [&](auto const& c) { return c.second == text; });
        ++(found != counts.end() ? *found : counts.emplace_back(0, text)).first;
    }
    std::stable_sort(counts.begin(), counts.end(), [](auto const& a, auto const& b) { return a.first > b.first; });
    std::string message;
    for (auto const& [count, word] : counts) {
        message += fmt::format("{}{} on {} rank{}", message.empty() ? "clocks: " : ", ", word.empty() ? "left alone" : word, count, count == 1 ? "" : "s");
    }
    return counts.size() == 1 && counts.front().second.empty() ? std::string{} : message;
}

/// Whether any rank has a reason not to begin. One rank speaks, the lowest with a reason.
startup_error first_refusal(mpi::messenger& messages, startup_error const& mine)
{
    auto const all = all_gather(messages, std::vector<std::int64_t>{number_of(mine.code)});
    for (std::size_t r = 0; r < all.size(); ++r) {
        if (all[r][0] != 0) {
            auto const culprit = messages.members().members[r];
            return culprit == messages.members().self ? mine
                                                      : startup_error{static_cast<exit_code>(all[r][0]), fmt::format("rank {} cannot begin", culprit.value)};
        }
    }
    return {};
}

/// The folder of a run, or of its k-th fork.
std::string folder_of(std::string const& folder, std::int64_t fork) { return fork == 0 ? folder : fmt::format("{}-fork-{}", folder, fork); }

/// A job that was killed a moment ago may still be ending; but no operation may take as long as the watchdog's deadline.
seconds patience_with_the_last_launch(watchdog_config const& watch) { return watch.factor > 0 ? std::min(seconds{5.0}, watch.least / 2.0) : seconds{5.0}; }

/// All ranks compute by the algorithms of the first member.
void agree_on_algorithms(mpi::messenger& messages, std::vector<fingerprint_line>& fingerprint)
{
    if (auto* const mine = line_in(fingerprint, algorithms_line); mine != nullptr) {  // else alike on all ranks, whose kernels are the same
        broadcast(messages, mine->value);
    }
}

/// All ranks keep the first member's notes, so that they are not lost with it.
void share_notes(mpi::messenger& messages, std::vector<std::string>& notes)
{
    std::string text;
    for (auto const& note : notes) {
        text += note + '\0';
    }
    broadcast(messages, text);
    notes.clear();
    for (std::size_t i = 0, end = 0; (end = text.find('\0', i)) != text.npos; i = end + 1) {
        notes.push_back(text.substr(i, end - i));
    }
}

/// Where the lowest rank has found that the run begins.
struct folder_start {
    std::int64_t step = -1;  ///< of the checkpoint; -1: none
    std::int64_t fork = 0;   ///< which one; 0: none
    bool ended = false;      ///< nothing is left to do
    energy_so_far drawn{};
    steps_so_far so_far{};

    std::vector<std::int64_t> words() const
    {
        auto all = so_far.words();
        all.insert(all.end(), {step, fork, ended ? 1 : 0, std::bit_cast<std::int64_t>(drawn.energy.count), drawn.tokens});
        return all;
    }
    static folder_start of(std::vector<std::int64_t> const& words)
    {
        auto const* rest = words.data() + steps_so_far::word_count;
        return {rest[0], rest[1], rest[2] != 0, {{std::bit_cast<double>(rest[3])}, rest[4]}, steps_so_far::of(words, 0)};
    }
};

/// What the lowest rank does where there is a checkpoint to resume from. @returns why the run does not resume from it
startup_error resume(run_config const& config, std::vector<fingerprint_line>& fingerprint, resume_mode mode, earlier_state const& found, folder_start& start,
                     std::vector<std::string>& notes)
{
    auto const& folder = config.run.folder;
    auto const& newest = *found.newest;
    auto const& began = newest.manifest().fingerprint;
    start.step = newest.step().value;
    if (start.step > config.train.steps) {
        return {exit_code::usage,
                fmt::format("cannot resume from the checkpoint of step {} in {}: train.steps = {} ends before it; more steps, or --resume never, "
                            "which begins with the first step again",
                            start.step, folder, config.train.steps)};
    }
    auto const differs = differences(began, fingerprint);
    auto const* const chosen = line_in(began, algorithms_line);
    if (auto* const mine = line_in(fingerprint, algorithms_line); mine != nullptr && chosen != nullptr && differs.empty()) {
        *mine = *chosen;
    }
    if (mode == resume_mode::fork) {
        while (std::filesystem::exists(folder_of(folder, ++start.fork))) {
        }
    } else if (!differs.empty()) {
        return {exit_code::usage, fmt::format("cannot resume from the checkpoint of step {} in {}: {}; --resume fork starts a new folder from that state, "
                                              "--resume never sets the run aside and starts at step 0",
                                              start.step, folder, message_about(differs))};
    }
    start.so_far = steps_of_records(folder, newest.step());
    // A newer checkpoint that cannot be read is written again, so that the last state is safe.
    if (mode == resume_mode::automatic && found.skipped.empty() && finished_run(folder, step_id{config.train.steps}, newest)) {
        start.ended = true;
        notes = {fmt::format("the run in {} has committed all its {} steps: nothing is left to do, and these are its figures", folder, config.train.steps)};
        return {};
    }
    notes.push_back(fmt::format("resuming after {} steps, from {}", start.step, newest.folder().string()));
    for (auto const& difference : differs) {
        notes.push_back(difference.message());
    }
    for (auto const& key : changed_keys(newest.manifest().config, to_toml(config))) {
        notes.push_back(key);
    }
    if (mode == resume_mode::automatic) {
        start.drawn = energy_of_records(folder, newest.step());
    }
    return {};
}

template <class Action>
startup_error error_of(Action action)
{
    try {
        return action();
    } catch (exit_error const& error) {
        return {error.code, error.what()};
    }
}

/// The lowest rank sees that no other launch has the run folder. @throws exit_error
startup_error take_folder(std::string const& folder, run_config const& config, run_lock& lock, std::vector<std::string>& notes, bool of_fork)
{
    make_record_folder(folder);
    auto const answer = lock.take(folder, of_fork ? seconds{} : patience_with_the_last_launch(config.run.watchdog));
    if (answer.granted && !answer.message.empty()) {
        notes.push_back(answer.message);
    }
    return answer.granted ? startup_error{} : startup_error{exit_code::environment, answer.message};
}

/// What the lowest rank does with the run folder, which it has taken unless it forks: looks for a checkpoint to resume from, and begins the folder.
/// Where state is there that cannot be read, nothing but the lock is touched.
startup_error begin_folder(run_config config, std::vector<fingerprint_line>& fingerprint, resume_mode mode, folder_start& start, run_lock& lock,
                           std::vector<std::string>& notes)
{
    auto const folder = config.run.folder;
    try {
        if (mode != resume_mode::never) {
            auto const found = find_earlier_state(folder);
            if (!found.error.empty()) {
                return {exit_code::bad_data, found.error};
            }
            notes.insert(notes.end(), found.skipped.begin(), found.skipped.end());
            if (found.newest) {
                if (auto const bad = resume(config, fingerprint, mode, found, start, notes); bad || start.ended) {
                    return bad;
                }
            } else if (mode == resume_mode::fork) {
                return {exit_code::usage,
                        fmt::format("--resume fork: {} has no checkpoint that a new folder could start from; without --resume a run begins there", folder)};
            }
        }
        config.run.folder = folder_of(folder, start.fork);
        if (mode == resume_mode::fork) {
            if (auto const bad = take_folder(config.run.folder, config, lock, notes, true)) {
                return bad;
            }
        }
        bool const resumes = start.step >= 0 && start.fork == 0;
        if (!resumes) {
            if (auto const aside = set_run_aside(config.run.folder); !aside.empty()) {
                notes.push_back(fmt::format("what an earlier run left in this folder is in {} now", aside.string()));
            }
        }
        begin_run_folder(config.run.folder, config, resumes);
    } catch (exit_error const& error) {
        return {error.code, error.what()};
    }
    return {};
}

startup_error open_checkpoint(std::string const& folder, step_id step, collection const& state, std::optional<checkpoint>& from)
{
    try {
        from.emplace(checkpoint_folder(folder, step));
        if (auto const error = from->load_error(state); !error.empty()) {
            return {exit_code::usage, error};
        }
    } catch (exit_error const& error) {
        return {error.code, error.what()};
    } catch (std::exception const& error) {  // it says what no memory holds, for example
        return {exit_code::bad_data, fmt::format("the checkpoint of step {} in {} cannot be read: {}", step.value, folder, error.what())};
    }
    return {};
}

}  // namespace

startup_error start_together(mpi::messenger& messages, run_config const& config, std::vector<fingerprint_line>& fingerprint, state_digest planned,
                             resume_mode mode, collection const& state, startup_error& mine, startup& begun)
{
    auto const& members = messages.members();
    begun.lock.release();  // an earlier try's
    bool const lowest = members.members.front() == members.self;
    if (auto const bad = first_refusal(messages, mine)) {
        return bad;
    }
    auto same = fingerprint;
    std::erase_if(same, [](auto const& line) { return line.name == algorithms_line; });
    same.push_back({"the plan (schedule files included)", to_string(planned)});
    if (auto const bad = compare_lines(messages, same)) {
        mine = lowest ? bad : startup_error{};
        return bad;
    }
    auto const moves = agree_on_transport(messages, config, begun.nccl);
    if (config.run.transport == transport_choice::nccl && !moves.reason.empty()) {
        startup_error const bad{exit_code::environment, fmt::format("run.transport = \"nccl\": {}", moves.reason)};
        mine = lowest ? bad : startup_error{};
        return bad;
    }
    folder_start start;
    begun.notes.clear();
    if (lowest && mode != resume_mode::fork) {
        mine = error_of([&] { return take_folder(config.run.folder, config, begun.lock, begun.notes, false); });
    }
    bool const has_local = !config.checkpoint.local.empty();
    if (has_local && mode == resume_mode::automatic) {
        if (auto const bad = first_refusal(messages, mine)) {
            return bad;
        }
        mine = take_up_local(messages, config, begun.notes);
    }
    if (lowest && !mine) {
        mine = begin_folder(config, fingerprint, mode, start, begun.lock, begun.notes);
    }
    if (auto const bad = first_refusal(messages, mine)) {
        return bad;
    }
    auto words = start.words();
    broadcast(messages, words);
    start = folder_start::of(words);
    agree_on_algorithms(messages, fingerprint);
    begun.folder = folder_of(config.run.folder, start.fork);
    begun.drawn = start.drawn;
    begun.so_far = start.so_far;
    begun.ended.reset();
    auto const clocks = message_about_clocks(messages, begun.clock_permission);
    if (lowest && !start.ended) {
        bool const by_device = config.run.device != compute_device::cpu && mpi::has_cuda_support();
        auto const way =
            moves.reason.empty() ? std::string{} : fmt::format("messages go {}by MPI: {}", by_device ? "from device to device " : "", moves.reason);
        for (auto const& message : {clocks, begun.device, way}) {
            begun.notes.insert(begun.notes.end(), message.empty() ? 0 : 1, message);
        }
    }
    share_notes(messages, begun.notes);
    begun.moves = moves;
    if (auto const bad = agree_on_launch(messages, begun.folder, begun.launch)) {
        mine = lowest ? bad : startup_error{};
        return bad;
    }
    if (!lowest) {
        mine = error_of([&] {
            auto const answer = begun.lock.join(begun.folder);
            return answer.granted ? startup_error{} : startup_error{exit_code::environment, answer.message};
        });
    }
    if (has_local && !start.ended) {
        auto const bad = begin_local(messages, config, begun.folder, start.step >= 0 && start.fork == 0, begun.launch.launch, state, begun.run);
        mine = mine ? mine : bad;
    }
    begun.from.reset();
    if (start.step >= 0 && !mine) {
        mine = open_checkpoint(config.run.folder, step_id{start.step}, state, begun.from);
    }
    if (start.ended && !mine) {
        begun.ended = finished_run(begun.folder, step_id{config.train.steps}, *begun.from);
        mine = begun.ended
                   ? startup_error{}
                   : startup_error{exit_code::environment,
                                   fmt::format("'{}/report.json' cannot be read on every rank: it must be one folder shared by all ranks", begun.folder)};
    }
    return first_refusal(messages, mine);
}

}  // namespace rheo::inline v0
