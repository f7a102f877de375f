// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint_writer.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "executor/checkpoint/checkpoint_publish.hpp"
#include "executor/checkpoint/part_files.hpp"
#include "executor/os/job_thread.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

std::vector<rank_id> deal_writing(collection const& state, std::vector<std::vector<rank_id>> const& holders)
{
    expects(holders.size() == state.tensors.size(), "every tensor has a list of its holders");
    std::vector<std::size_t> order(state.tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return elements(state.tensors[a].shape) > elements(state.tensors[b].shape); });
    std::vector<std::pair<rank_id, std::int64_t>> loads;  // ascending by rank
    for (auto const& some : holders) {
        for (auto const rank : some) {
            loads.emplace_back(rank, 0);
        }
    }
    std::sort(loads.begin(), loads.end());
    loads.erase(std::unique(loads.begin(), loads.end()), loads.end());
    auto const load_of = [&](rank_id rank) -> std::int64_t& { return std::lower_bound(loads.begin(), loads.end(), std::pair{rank, std::int64_t{-1}})->second; };
    std::vector<rank_id> writers(state.tensors.size(), rank_id{-1});
    for (auto const t : order) {
        if (!state.tensors[t].is_parameter) {
            continue;
        }
        expects(!holders[t].empty(), "every parameter has a holder");
        auto const has_less = [&](rank_id a, rank_id b) { return std::pair{load_of(a), a} < std::pair{load_of(b), b}; };
        auto const least = *std::min_element(holders[t].begin(), holders[t].end(), has_less);
        load_of(least) += elements(state.tensors[t].shape);
        writers[t] = least;
    }
    return writers;
}

namespace {

/// The rows of a part's piece, which lie `row` elements apart.
std::vector<float> piece_of(std::vector<float> const& all, std::int64_t first, std::int64_t row, index_box const& box)
{
    std::vector<float> values;
    values.reserve(static_cast<std::size_t>(elements(box)));
    for (auto r = box.row_begin; r < box.row_end; ++r) {
        auto const from = all.begin() + first + (r - box.row_begin) * row;
        values.insert(values.end(), from, from + (box.column_end - box.column_begin));
    }
    return values;
}

/// The boxes of a tensor that is no whole parameter, with the place of each in it.
template <class Add>
void for_each_piece(tensor_info const& info, Add add)
{
    bool const side_by_side = info.shape.columns != info.part.whole.columns;
    std::int64_t first = 0;
    for (auto const& box : info.part.pieces) {
        add(box, first);
        first += side_by_side ? box.column_end - box.column_begin : elements(box);
    }
}

void add_boxes(checkpoint_part& part, tensor_id t, tensor_info const& info, tensor_values&& values)
{
    if (info.shape == parameter_shape(info)) {
        part.tensors.push_back({t, parameter_name(info), info.shape, whole(info.shape), std::move(values)});
        return;
    }
    for_each_piece(info, [&](index_box const& box, std::int64_t first) {
        auto const of = [&](std::vector<float> const& all) { return piece_of(all, first, info.shape.columns, box); };
        part.tensors.push_back({t, info.part.parameter, info.part.whole, box, {of(values.parameter), of(values.first_moment), of(values.second_moment)}});
    });
}

/// The same of arrays from `array` on.
void add_boxes_beside(checkpoint_part& part, tensor_id t, tensor_info const& info, std::size_t array)
{
    if (info.shape == parameter_shape(info)) {
        part.tensors.push_back({t, parameter_name(info), info.shape, whole(info.shape), {}, copied_beside{array, 0, info.shape.columns}});
        return;
    }
    for_each_piece(info, [&](index_box const& box, std::int64_t first) {
        part.tensors.push_back({t, info.part.parameter, info.part.whole, box, {}, copied_beside{array, first, info.shape.columns}});
    });
}

bool can_be_copied_beside(resident_state const& state) { return state.backend().has_one_memory() && state.backend().policy().master == dtype::f32; }

}  // namespace

checkpoint_part take_part(resident_state const& state, std::span<rank_id const> writers, rank_id self, step_id step, generation_id generation,
                          snapshot_kind kind)
{
    checkpoint_part part{self, step, generation, {}};
    bool const beside = kind == snapshot_kind::beside && can_be_copied_beside(state);
    std::vector<std::span<float const>> arrays;
    for (tensor_id t{0}; at(t) < writers.size(); ++t) {
        if (writers[at(t)] != self) {
            continue;
        }
        auto const& tensor = state.tensor(t);
        if (beside) {
            add_boxes_beside(part, t, state.info(t), arrays.size());
            arrays.insert(arrays.end(), {tensor.parameter.floats(), tensor.first_moment.floats(), tensor.second_moment.floats()});
        } else {
            add_boxes(part, t, state.info(t), values_of(state.backend(), tensor));
        }
    }
    part.copies = beside ? std::make_shared<state_snapshot>(std::move(arrays)) : nullptr;
    return part;
}

std::vector<checkpoint_tensor> tensors_for_manifest(collection const& state)
{
    std::vector<checkpoint_tensor> result;
    std::set<std::string_view> known;
    for (auto const& info : state.tensors) {
        if (known.insert(parameter_name(info)).second) {
            result.push_back({parameter_name(info), parameter_shape(info), info.is_parameter, std::nullopt, {}, {}});
        }
        if (info.name != parameter_name(info)) {
            result.push_back({info.name, info.shape, false, std::nullopt, {}, parameter_name(info)});
        }
    }
    return result;
}

std::vector<checkpoint_tensor> tensors_for_manifest(resident_state const& state)
{
    auto result = tensors_for_manifest(state.info());
    std::map<std::string_view, tensor_id> numbers;
    for (tensor_id t{0}; at(t) < state.info().tensors.size(); ++t) {
        numbers.emplace(state.info(t).name, t);
    }
    for (auto& listed : result) {
        auto const found = numbers.find(listed.name);
        if (found == numbers.end()) {
            continue;  // a parameter whose parts have scales
        }
        auto const scales = state.scales_of(found->second);
        if (state.sums_in_rows(state.info(found->second))) {
            listed.row_scales_log2.assign(scales.begin(), scales.end());
        } else {
            listed.scale_log2 = scales.front();
        }
    }
    return result;
}

bytes bytes_of(std::span<checkpoint_tensor const> tensors)
{
    constexpr std::int64_t bytes_per_element = 12;  // a parameter and its two moments
    bytes sum;
    for (auto const& tensor : tensors) {
        sum.count += tensor.is_parameter ? bytes_per_element * elements(tensor.shape) : 0;
    }
    return sum;
}

struct checkpoint_writer::impl {
    struct abandoned {};

    std::filesystem::path run_folder;
    std::function<void(checkpoint_point)> at;

    mutable std::mutex mutex;
    std::condition_variable changed{};  ///< the state
    writer_state state = writer_state::idle;
    std::uint64_t epoch = 0;  ///< of the part at hand; another one: it was abandoned
    std::string message{};
    writing_record written{};
    part_place place{};  ///< of the part at hand

    bool is_at(std::uint64_t which) const
    {
        std::lock_guard const lock{mutex};
        return epoch == which;
    }

    void write(part_place const& part, std::function<bytes(part_progress const&)> const& put, std::uint64_t which)
    {
        auto const began = std::chrono::steady_clock::now();
        std::string failure;
        bytes size{0};
        bool forgotten = false;
        try {
            size = put({at, [&] {
                            if (!is_at(which)) {
                                throw abandoned{};
                            }
                        }});
        } catch (abandoned const&) {
            forgotten = true;
        } catch (std::exception const& error) {
            failure = error.what();
        }
        seconds const duration{std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
        {
            std::lock_guard const lock{mutex};
            forgotten = forgotten || epoch != which;
            if (!forgotten) {
                state = failure.empty() ? writer_state::ready : writer_state::failed;
                message = failure;
                written = failure.empty() ? writing_record{part.step, size, duration} : written;
            }
        }
        if (forgotten || !failure.empty()) {
            remove_part(part.folder, part.rank);
        }
    }

    void publish(checkpoint_publication const& publication)
    {
        std::string failure;
        bool done = false;
        try {
            failure = publish_parts(run_folder, publication, at);
            done = true;
        } catch (std::exception const& error) {
            failure = error.what();
            remove_unfinished(run_folder, publication.step, publication.generation);
        }
        std::lock_guard const lock{mutex};
        state = done ? writer_state::published : writer_state::failed;
        message = failure;
        changed.notify_all();
    }

    job_thread thread{};  ///< the last member: its jobs use the others
};

checkpoint_writer::checkpoint_writer(std::filesystem::path run_folder, std::function<void(checkpoint_point)> at) : impl_{std::make_unique<impl>()}
{
    impl_->run_folder = std::move(run_folder);
    impl_->at = at ? std::move(at) : [](checkpoint_point) {};
    // On a thread that takes no signals a write beyond a size limit fails with a reason instead of ending the process.
}

checkpoint_writer::~checkpoint_writer() { abandon(); }

void checkpoint_writer::begin(checkpoint_part part)
{
    part_place place{unfinished_folder(impl_->run_folder, part.step, part.generation), part.rank, part.step};
    auto const folder = place.folder;
    begin(std::move(place),
          [folder, shared = std::make_shared<checkpoint_part const>(std::move(part))](part_progress const& on) { return write_part(folder, *shared, on); });
}

void checkpoint_writer::begin(part_place place, std::function<bytes(part_progress const&)> write)
{
    std::unique_lock lock{impl_->mutex};
    auto& i = *impl_;
    i.changed.wait(lock, [&i] { return i.state != writer_state::publishing; });
    expects(i.state != writer_state::writing && i.state != writer_state::ready, "a part of a checkpoint is begun when no other one is at hand");
    i.state = writer_state::writing;
    i.message.clear();
    i.place = place;
    i.thread.add([&i, place = std::move(place), write = std::move(write), which = ++i.epoch] { i.write(place, write, which); });
}

writer_state checkpoint_writer::state() const
{
    std::lock_guard const lock{impl_->mutex};
    return impl_->state;
}

std::string checkpoint_writer::message() const
{
    std::lock_guard const lock{impl_->mutex};
    return impl_->message;
}

writing_record checkpoint_writer::written() const
{
    std::lock_guard const lock{impl_->mutex};
    return impl_->written;
}

void checkpoint_writer::publish(checkpoint_publication publication)
{
    std::lock_guard const lock{impl_->mutex};
    auto& i = *impl_;
    expects(i.state != writer_state::writing && i.state != writer_state::publishing, "a checkpoint is published when its parts are ready, once");
    i.state = writer_state::publishing;
    i.message.clear();
    i.thread.add([&i, shared = std::make_shared<checkpoint_publication const>(std::move(publication))] { i.publish(*shared); });
}

void checkpoint_writer::hand_over()
{
    std::lock_guard const lock{impl_->mutex};
    expects(impl_->state == writer_state::ready, "only a part that is ready can be handed over");
    impl_->state = writer_state::idle;
}

void checkpoint_writer::abandon()
{
    std::lock_guard const lock{impl_->mutex};
    auto& i = *impl_;
    if (i.state == writer_state::ready) {
        i.thread.add([place = i.place] { remove_part(place.folder, place.rank); });
    }
    if (i.state != writer_state::publishing) {
        ++i.epoch;
        i.state = writer_state::idle;
    }
}

writer_state checkpoint_writer::wait()
{
    impl_->thread.wait();
    return state();
}

}  // namespace rheo::inline v0
