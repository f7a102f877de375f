// SPDX-License-Identifier: Apache-2.0
// The analysis for people: one line that answers, then tables that fit a screen.

#include "executor/cli/analyze/device/analyzed_job.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rheo/units/in_quotes.hpp"

namespace rheo::cli {

namespace {

std::string microseconds_text(whole_nanoseconds time) { return fmt::format("{:.1f}", static_cast<double>(time.count) * 1e-3); }

std::string grown_text(std::optional<grown_class> const& grown)
{
    return grown ? fmt::format("{} more {}", time_text(grown->by), name_of(grown->in)) : std::string{"-"};
}

std::string_view waits_for(time_class c)
{
    switch (c) {
    case time_class::computation: break;
    case time_class::communication: return "for exposed communication";
    case time_class::copies: return "for exposed copies";
    case time_class::host_wait: return "for late launches of the host";
    case time_class::kernel_wait: return "between kernels, below 30 us each";
    case time_class::other_wait: return "in gaps of 30 us and more";
    }
    return "for computation";
}

shown_table ranks_table(analyzed_job const& job, std::size_t most)
{
    std::vector<text_row> rows;
    auto const not_computing = [](rank_analysis const& rank) { return rank.account.span - rank.account.compute; };
    for (auto const& rank : heaviest(job.analysis.ranks, most, not_computing)) {
        auto const& a = rank.account;
        rows.push_back({{fmt::format("{}", rank.rank.value), milliseconds_text(a.span), share(a.compute, a.span), share(a.communication, a.span),
                         share(a.overlap, a.span), share(exposed(a), a.span), share(time_in(a, time_class::copies), a.span), share(a.host_wait, a.span),
                         share(a.kernel_wait, a.span), share(a.other_wait, a.span)}});
    }
    return {"Ranks",
            "ranks: span on the device in ms, the rest in % of it",
            job.analysis.ranks.size(),
            {{"rank", true},
             {"span", true},
             {"compute", true},
             {"communicate", true},
             {"both", true},
             {"exposed", true},
             {"copies", true},
             {"host wait", true},
             {"kernel wait", true},
             {"other", true}},
            std::move(rows)};
}

shown_table streams_table(analyzed_job const& job, std::size_t most)
{
    struct place {
        std::size_t rank;
        std::size_t stream;
    };
    std::vector<place> places;
    for (std::size_t r = 0; r < job.traces.size(); ++r) {
        for (std::size_t s = 0; s < job.traces[r].streams.size(); ++s) {
            places.push_back({r, s});
        }
    }
    auto const account_at = [&](place p) -> stream_account const& { return job.analysis.ranks[p.rank].streams[p.stream]; };
    std::vector<text_row> rows;
    for (auto const p : heaviest(places, most, [&](place p) { return gaps(account_at(p)); })) {
        auto const& stream = job.traces[p.rank].streams[p.stream];
        auto const& a = account_at(p);
        rows.push_back(
            {{fmt::format("{}", job.traces[p.rank].rank.value), fmt::format("{}", stream.device), fmt::format("{}", stream.number), fmt::format("{}", a.events),
              milliseconds_text(a.busy), milliseconds_text(a.host_wait), milliseconds_text(a.kernel_wait), milliseconds_text(a.other_wait)}});
    }
    return {"Streams",
            "streams: gaps in ms",
            places.size(),
            {{"rank", true}, {"device", true}, {"stream", true}, {"events", true}, {"busy", true}, {"host wait", true}, {"kernel wait", true}, {"other", true}},
            std::move(rows)};
}

shown_table launches_table(analyzed_job const& job, std::size_t most)
{
    std::vector<rank_analysis> known;
    std::copy_if(job.analysis.ranks.begin(), job.analysis.ranks.end(), std::back_inserter(known),
                 [](auto const& rank) { return rank.launches.delay.count > 0; });
    auto const all = known.size();
    std::vector<text_row> rows;
    for (auto const& rank : heaviest(std::move(known), most, [](rank_analysis const& r) { return r.launches.short_kernels; })) {
        auto const& l = rank.launches;
        rows.push_back({{fmt::format("{}", rank.rank.value), fmt::format("{}", l.kernels), fmt::format("{}", l.short_kernels),
                         microseconds_text(l.delay.median), microseconds_text(l.delay.p99), microseconds_text(l.delay.most)}});
    }
    return {"Launches",
            "launches: kernels shorter than their launch; delays after it in us",
            all,
            {{"rank", true}, {"kernels", true}, {"short", true}, {"median", true}, {"p99", true}, {"most", true}},
            std::move(rows)};
}

shown_table steps_table(analyzed_job const& job, std::size_t most)
{
    std::vector<rank_analysis> marked;
    std::copy_if(job.analysis.ranks.begin(), job.analysis.ranks.end(), std::back_inserter(marked), [](auto const& rank) { return rank.steps.times.count > 0; });
    auto const all = marked.size();
    std::vector<text_row> rows;
    for (auto const& rank : heaviest(std::move(marked), most, [](rank_analysis const& r) { return r.steps.times.most; })) {
        auto const& s = rank.steps;
        rows.push_back(
            {{fmt::format("{}", rank.rank.value), fmt::format("{}", s.times.count), milliseconds_text(s.times.mean), milliseconds_text(s.times.median),
              milliseconds_text(s.times.p99), milliseconds_text(s.times.most), fmt::format("{}", s.slowest), grown_text(s.because)}});
    }
    return {"Steps",
            "steps in ms, and what the slowest has more of than the others",
            all,
            {{"rank", true}, {"steps", true}, {"mean", true}, {"median", true}, {"p99", true}, {"slowest", true}, {"number", true}, {"because"}},
            std::move(rows)};
}

shown_table stragglers_table(analyzed_job const& job, std::size_t most)
{
    auto const& report = job.analysis.stragglers;
    std::vector<text_row> rows;
    for (auto const& s : report.stragglers) {
        if (rows.size() == most) {
            break;
        }
        rows.push_back({{fmt::format("{}", job.traces[s.trace].rank.value), fmt::format("{}", s.times), fmt::format("{}", s.steps), milliseconds_text(s.late),
                         microseconds_text(s.worst), in_quotes(job.analysis.series[s.series].name, 24)},
                        grown_text(s.because)});
    }
    auto const title = fmt::format("late ranks at {} judged {}: late in ms, worst in us, what took longer", report.meetings,
                                   report.meetings == 1 ? "collective" : "collectives");
    return {"Late ranks",
            title,
            report.stragglers.size(),
            {{"rank", true}, {"collectives", true}, {"steps", true}, {"late", true}, {"worst", true}, {"at"}},
            std::move(rows)};
}

/// Of the rank that spends most time on them, where that is worth a word.
std::vector<finding> findings_of(analyzed_job const& job)
{
    auto const& ranks = job.analysis.ranks;
    auto const most = std::max_element(ranks.begin(), ranks.end(), [](auto const& a, auto const& b) { return a.copies.time < b.copies.time; });
    if (most == ranks.end() || most->copies.time.count * worth_a_word < most->account.span.count) {
        return {};
    }
    return {{"pageable copies", most->copies.time / most->account.span,
             fmt::format("rank {} spends {} on {} copies from or to memory that is not page-locked", most->rank.value, time_text(most->copies.time),
                         most->copies.count),
             "", "page-locked memory (pin_memory=True, cudaHostAlloc), with copies that are not waited for"}};
}

}  // namespace

std::string answer_of(analyzed_job const& job)
{
    auto const& total = job.analysis.total;
    auto const who = job.traces.size() == 1 ? fmt::format("rank {} waits", job.traces.front().rank.value) : fmt::format("{} ranks wait", job.traces.size());
    auto const most = most_waited_for(total);
    if (!most) {
        return fmt::format("nothing stands out: computation fills {} % of {}", share(total.compute, total.span), time_text(total.span));
    }
    auto answer = fmt::format("{} most {}: {} % of {}", who, waits_for(*most), share(time_in(total, *most), total.span), time_text(total.span));
    if (auto const& late = job.analysis.stragglers.stragglers; !late.empty()) {
        answer += fmt::format("; rank {} is late, by up to {}", job.traces[late.front().trace].rank.value, time_text(late.front().worst));
    }
    return answer;
}

std::string title_of(analyzed_job const& job) { return fmt::format("Traces of {} {}", job.traces.size(), job.traces.size() == 1 ? "rank" : "ranks"); }

analysis_document document_of(analyzed_job const& job, std::size_t most)
{
    analysis_document document{answer_of(job), findings_of(job)};
    document.tables = {ranks_table(job, most), streams_table(job, most), launches_table(job, most), steps_table(job, most), stragglers_table(job, most)};
    if (auto const apart = job.analysis.stragglers.apart; apart > 0) {
        document.footnotes.push_back(fmt::format("{} collectives did not end at once on the ranks that seem to share them, and were not judged", apart));
    }
    if (job.left_out > 0) {
        document.footnotes.push_back(fmt::format("{} events have no time or duration and were left out", job.left_out));
    }
    return document;
}

}  // namespace rheo::cli
