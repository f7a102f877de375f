// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/simulate/job_picture.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/simulate/job_curves.hpp"
#include "executor/report/blocks.hpp"
#include "rheo/trace/svg.hpp"

namespace rheo::cli {

namespace {

constexpr double width = 900.0;
constexpr double left = 70.0;
constexpr double right = 130.0;
constexpr double chart_height = 130.0;
constexpr double chart_pitch = 190.0;
constexpr double first_chart = 70.0;
constexpr std::string_view colours[] = {"#2f6fae", "#d9730d", "#2e8b3d", "#c43c4b", "#7e57b2", "#0f8b8d", "#8a6d1d", "#5f6b7a"};

struct time_unit {
    double size;
    std::string_view name;
};

time_unit unit_of(double s)
{
    return s < 1.0 ? time_unit{1e-3, "ms"} : s < 300.0 ? time_unit{1.0, "s"} : s < 18000.0 ? time_unit{60.0, "min"} : time_unit{3600.0, "h"};
}

std::string_view colour_of(curve const& c, std::size_t place)
{
    return colours[static_cast<std::size_t>(c.colour >= 0 ? c.colour : static_cast<int>(place % 8))];
}

/// One chart of the picture.
class drawn_chart {
public:
    drawn_chart(svg_picture<>& picture, curve_chart const& chart, double end, double top) : picture_{&picture}, chart_{&chart}, end_{end}, top_{top}
    {
        for (auto const& c : chart.curves) {
            for (auto const y : c.y) {
                most_ = std::max(most_, y);
            }
        }
        most_ = chart.is_stacked ? 100.0 : most_ > 0.0 ? 1.05 * most_ : 1.0;
    }

    void draw()
    {
        picture_->text({{left}, {top_ - 14.0}}, chart_->name);
        if (chart_->is_stacked) {
            draw_bands();
        }
        draw_axes();
        for (std::size_t k = 0; k < chart_->curves.size() && !chart_->is_stacked; ++k) {
            auto const& c = chart_->curves[k];
            std::vector<svg_point> points;
            for (std::size_t i = 0; i < c.x.size(); ++i) {
                points.push_back(place(c.x[i], c.y[i]));
            }
            if (!points.empty()) {
                picture_->curve(points, colour_of(c, k));
            }
        }
        for (auto const& mark : chart_->marks) {
            auto const at = place(mark.x, 0.0).x.count;
            picture_->box({{at - 0.4}, {top_}}, {{at + 0.4}, {top_ + chart_height}}, "#c43c4b", mark.text);
            picture_->box({{at - 3.0}, {top_ - 6.0}}, {{at + 3.0}, {top_}}, "#c43c4b", mark.text);
        }
        draw_legend();
    }

private:
    svg_point place(double x, double y) const { return {{left + x / end_ * (width - left - right)}, {top_ + chart_height * (1.0 - y / most_)}}; }

    void draw_axes()
    {
        auto const across = axis_step(most_, 3.0);
        for (int k = 0; k * across <= most_; ++k) {
            picture_->line(place(0.0, k * across), place(end_, k * across), "#e0e0e0");
            picture_->text({{left - 6.0}, {place(0.0, k * across).y.count + 4.0}}, fmt::format("{:g}", k * across), svg_anchor::end);
        }
        auto const unit = unit_of(end_);
        auto const along = axis_step(end_ / unit.size / 2.0, 3.0);
        for (int k = 0; k * along * unit.size <= end_; ++k) {
            picture_->text({{place(k * along * unit.size, 0.0).x.count}, {top_ + chart_height + 16.0}}, fmt::format("{:g}", k * along), svg_anchor::middle);
        }
        picture_->text({{width - right}, {top_ + chart_height + 32.0}}, fmt::format("time since the launch, {}", unit.name), svg_anchor::end);
    }

    /// A box for each part of the job and each class that it has.
    void draw_bands()
    {
        auto const parts = chart_->curves.empty() ? std::size_t{0} : chart_->curves.front().x.size();
        for (std::size_t i = 0; i < parts; ++i) {
            auto const from = end_ * static_cast<double>(i) / static_cast<double>(parts);
            auto const over = i + 1 < parts ? 1.5 : 1.0;  // the next ones lie on top, so that no seam shows
            auto const to = end_ * (static_cast<double>(i) + over) / static_cast<double>(parts);
            double below = 0.0;
            for (std::size_t k = 0; k < chart_->curves.size(); ++k) {
                auto const& c = chart_->curves[k];
                if (c.y[i] > 0.0) {
                    picture_->box(place(from, below + c.y[i]), place(to, below), colour_of(c, k), fmt::format("{}: {:.1f} %", c.name, c.y[i]));
                    below += c.y[i];
                }
            }
        }
    }

    void draw_legend()
    {
        auto line = top_ + 10.0;
        for (std::size_t k = 0; k < chart_->curves.size() && (chart_->is_stacked || chart_->curves.size() > 1); ++k) {
            picture_->box({{width - right + 14.0}, {line - 8.0}}, {{width - right + 23.0}, {line + 1.0}}, colour_of(chart_->curves[k], k));
            picture_->text({{width - right + 28.0}, {line}}, chart_->curves[k].name);
            line += 16.0;
        }
    }

    svg_picture<>* picture_;
    curve_chart const* chart_;
    double end_;
    double top_;
    double most_ = 0.0;
};

}  // namespace

std::string job_picture(job_report const& report, std::string_view config)
{
    auto const charts = curves_of(report);
    auto const height = first_chart + chart_pitch * static_cast<double>(charts.size()) - 20.0;
    double end = 1e-9;
    for (auto const& named : report.jobs) {
        end = std::max(end, static_cast<double>(named.job.account.end.count) * 1e-9);
    }
    svg_picture<> picture{{{width}, {height}}};
    picture.box({{0}, {0}}, {{width}, {height}}, "#ffffff");
    picture.text({{left}, {20}}, fmt::format("{}, simulated: {}", config, headline_of(report)));
    auto top = first_chart;
    for (auto const& chart : charts) {
        drawn_chart{picture, chart, end, top}.draw();
        top += chart_pitch;
    }
    return picture.str();
}

}  // namespace rheo::cli
