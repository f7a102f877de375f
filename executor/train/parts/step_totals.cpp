// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/step_totals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

/// Every field, with how it is reduced, in the order in which they travel.
template <class Totals, class Fields>
void for_each_field(Totals& totals, Fields& fields)
{
    fields.largest(totals.squares);
    fields.largest(totals.magnitudes);
    fields.any(totals.overflow);
    fields.first(totals.not_finite);
    fields.any(totals.stop_requested);
    fields.any(totals.checkpoint_wanted);
    fields.any(totals.reshape_requested);
    fields.any(totals.transport_comes_up);
    fields.any(totals.transport_failed);
    fields.fewest(totals.device_clocks);
    fields.largest(totals.changed_file);
    fields.any(totals.leaving);
    fields.largest(totals.slowness);
    fields.largest(totals.meter_known);
    fields.largest(totals.meter_count);
    fields.any(totals.loss.not_finite);
    fields.sum(totals.loss.fixed);
    fields.sum(totals.loss.targets);
    fields.sum(totals.contributions);
    fields.sum(totals.computing.count);
}

// A place as a number: the first microbatch in the model's order has the largest one, and no place is less than any.
constexpr double beyond_all_places = 1e12;
constexpr std::int64_t most_layers = 100000;

double number_of(not_finite_place place) { return beyond_all_places - static_cast<double>(place.microbatch.value * most_layers + place.layer.value); }

not_finite_place place_of(double number)
{
    auto const code = static_cast<std::int64_t>(beyond_all_places - number);
    return {microbatch_id{static_cast<std::int32_t>(code / most_layers)}, layer_id{static_cast<std::int32_t>(code % most_layers)}};
}

class packer {
public:
    step_scalars scalars;

    template <class T>
    void largest(std::vector<T> const& values)
    {
        scalars.maxima.insert(scalars.maxima.end(), values.begin(), values.end());
    }
    void largest(std::optional<std::size_t> const& number) { maximum(number ? 1.0 + static_cast<double>(*number) : 0.0); }
    void any(bool flag) { maximum(flag ? 1 : 0); }
    void any(std::vector<bool> const& flags)
    {
        std::for_each(flags.begin(), flags.end(), [this](bool flag) { any(flag); });
    }
    void first(std::optional<not_finite_place> const& place) { maximum(place ? number_of(*place) : 0); }
    void fewest(std::size_t count) { maximum(-static_cast<double>(count)); }
    void sum(std::int64_t value) { scalars.sums.push_back(value); }

private:
    void maximum(double value) { scalars.maxima.push_back(value); }
};

class unpacker {
public:
    explicit unpacker(step_scalars const& scalars) : scalars_{&scalars} {}

    template <class T>
    void largest(std::vector<T>& values)
    {
        std::generate(values.begin(), values.end(), [this] { return static_cast<T>(maximum()); });
    }
    void largest(std::optional<std::size_t>& number)
    {
        auto const value = maximum();
        number = value > 0 ? std::optional{static_cast<std::size_t>(value) - 1} : std::nullopt;
    }
    void any(bool& flag) { flag = maximum() != 0; }
    void any(std::vector<bool>& flags)
    {
        std::generate(flags.begin(), flags.end(), [this] { return maximum() != 0; });
    }
    void first(std::optional<not_finite_place>& place)
    {
        auto const value = maximum();
        place = value > 0 ? std::optional{place_of(value)} : std::nullopt;
    }
    void fewest(std::size_t& count) { count = static_cast<std::size_t>(-maximum()); }
    void sum(std::int64_t& value) { value = scalars_->sums.at(sums_++); }

    bool is_done() const { return maxima_ == scalars_->maxima.size() && sums_ == scalars_->sums.size(); }

private:
    double maximum() { return scalars_->maxima.at(maxima_++); }

    step_scalars const* scalars_;
    std::size_t maxima_ = 0;  ///< read so far
    std::size_t sums_ = 0;
};

}  // namespace

double step_totals::targets() const { return static_cast<double>(std::max<std::int64_t>(1, loss.targets)); }

double step_totals::gradient_norm() const
{
    if (not_finite) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    double sum = 0;  // in the order of the tensors
    for (auto const s : squares) {
        sum += s;
    }
    return std::sqrt(sum) / targets();
}

step_scalars packed(step_totals const& totals)
{
    packer fields;
    for_each_field(totals, fields);
    return std::move(fields.scalars);
}

void unpack(step_scalars const& scalars, step_totals& totals)
{
    unpacker fields{scalars};
    for_each_field(totals, fields);
    expects(fields.is_done(), "a reduction has as many values as were packed");
}

void all_reduce(mpi::messenger& messages, step_totals& totals)
{
    auto scalars = packed(totals);
    all_reduce(messages, scalars);
    unpack(scalars, totals);
}

}  // namespace rheo::inline v0
