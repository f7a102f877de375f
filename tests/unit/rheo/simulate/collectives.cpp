// SPDX-License-Identifier: Apache-2.0
// Collectives played on networks: ASTRA-sim's figures, closed forms where nobody shares, and that each message that is sent is received.
#include <limits>
#include <map>
#include <tuple>

#include "astra_networks.hpp"
#include "rheo/simulate/collectives/collective_time.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr collective operations[] = {collective::all_reduce, collective::all_gather, collective::reduce_scatter, collective::all_to_all,
                                     collective::broadcast,  collective::reduce,     collective::gather,         collective::scatter};
constexpr collective_form forms[] = {collective_form::ring, collective_form::direct, collective_form::halving_doubling, collective_form::tree,
                                     collective_form::slice_owner};
constexpr network_topology topologies[] = {network_topology::ring, network_topology::switched, network_topology::full};

template <class Model>
whole_nanoseconds played(test::vector_table const& table, std::string const& line)
{
    collective_request<Model> request;
    auto const algorithm = table.cell(line, "algorithm");
    auto const form = algorithm == "halvingDoubling" ? std::string{"halving_doubling"} : algorithm;
    for (auto const what : operations) {
        request.operation = name_of(what) == table.cell(line, "collective") ? what : request.operation;
    }
    for (auto const f : forms) {
        request.form = name_of(f) == form ? f : request.form;
    }
    REQUIRE(name_of(request.operation) == table.cell(line, "collective"));
    REQUIRE(name_of(request.form) == form);
    request.size = {table.integer(line, "bytes")};
    request.chunks = static_cast<int>(table.integer(line, "chunks"));
    request.active_chunks = static_cast<int>(table.integer(line, "active_chunks"));
    request.handover = {table.integer(line, "endpoint_ns")};
    request.memory = bytes_per_nanosecond{table.number(line, "memory_1e9B_per_s")};
    auto const time = collective_time<Model>(test::astra_network(table, line), request);
    CAPTURE(time.error());
    REQUIRE(time);
    return *time;
}

std::vector<network_level<>> one_level(int members, network_topology topology, double latency, double rate)
{
    return {{members, topology, {{latency}, {rate}}}};
}

}  // namespace

TEST_CASE("collectives: each row takes what ASTRA-sim says")
{
    test::vector_table const table{test::read_vectors("astra/collectives.csv")};
    for (auto const& line : table.lines) {
        CAPTURE(line);
        auto const time =
            table.cell(line, "network") == "contended" ? played<integer_contended_network>(table, line) : played<integer_free_network>(table, line);
        CHECK(time.count == table.integer(line, "result_ns"));
    }
}

TEST_CASE("collectives: what is sent is received, once")
{
    for (int n = 2; n <= 33; ++n) {
        for (auto const what : operations) {
            for (auto const form : {collective_form::ring, collective_form::halving_doubling, collective_form::tree}) {
                if (!has_form(what, form) || (form == collective_form::halving_doubling && (n & (n - 1)) != 0)) {
                    continue;
                }
                collective_phase const phase{what, 0, 1, n, {1 << 20}};
                std::map<std::tuple<int, std::int64_t>, int> open;  // receiver, key -> sends without receives
                int sends = 0;
                for (int place = 0; place < n; ++place) {
                    for (std::int64_t k = 0;; ++k) {
                        auto const step = step_of(form, phase, place, k);
                        if (step.kind == step_kind::end) {
                            break;
                        }
                        CHECK((step.kind == step_kind::receive || (step.peer != place && step.peer >= 0 && step.peer < n)));
                        sends += step.kind == step_kind::send ? 1 : 0;
                        open[{step.kind == step_kind::send ? step.peer : place, step.key}] += step.kind == step_kind::send ? 1 : -1;
                    }
                }
                CAPTURE(n, name_of(what), name_of(form), sends);
                CHECK(sends >= n - 1);
                for (auto const& [message, left] : open) {
                    CHECK(left == 0);
                }
            }
        }
    }
}

TEST_CASE("collectives: trees gather and scatter each part once")
{
    for (int n = 2; n <= 33; ++n) {
        for (auto const what : {collective::reduce, collective::gather, collective::scatter, collective::broadcast}) {
            collective_phase const phase{what, 0, 1, n, {5 * n}};
            std::int64_t with_root = 0;
            int sends = 0;
            for (int place = 0; place < n; ++place) {
                for (std::int64_t k = 0;; ++k) {
                    auto const step = step_of(collective_form::tree, phase, place, k);
                    if (step.kind == step_kind::end) {
                        break;
                    }
                    sends += step.kind == step_kind::send ? 1 : 0;
                    with_root += step.kind == step_kind::send && (place == 0 || step.peer == 0) ? step.size.count : 0;
                }
            }
            CAPTURE(n, name_of(what));
            CHECK(sends == n - 1);
            if (what == collective::gather || what == collective::scatter) {  // a gather has 5 n bytes of each, a scatter 5
                CHECK(with_root == (n - 1) * (what == collective::gather ? 5 * n : 5));
            }
        }
    }
}

TEST_CASE("collectives: alone on the network they take closed forms")
{
    double const latency = 3.0;
    double const rate = 16.0;
    double const handover = 0.5;
    for (int n : {2, 4, 8, 16}) {
        for (int const chunks : {1, 4}) {
            collective_request<free_network> request{.size = {1 << 16}, .chunks = chunks, .handover = {handover}, .memory = bytes_per_second{64.0}};
            auto const time = [&](collective what, collective_form form) {
                request.operation = what;
                request.form = form;
                return collective_time<free_network>(one_level(n, network_topology::full, latency, rate), request)->count;
            };
            double const chunk = static_cast<double>((1 << 16) / chunks);
            auto const message = [&](double size) { return latency + size / rate; };
            auto const sum = [&](double size) { return 3.0 * size / 64.0; };
            double const part = chunk / n;
            double const others = n - 1;
            CAPTURE(n, chunks);
            CHECK(time(collective::all_reduce, collective_form::ring) ==
                  Approx(chunks * (2.0 * others * message(part) + others * sum(part) + (2.0 * others + 1.0) * handover)));
            CHECK(time(collective::all_to_all, collective_form::direct) == Approx(chunks * (message(part) + 2.0 * handover)));
            CHECK(time(collective::reduce_scatter, collective_form::direct) == Approx(chunks * (message(part) + sum(part) + 2.0 * handover)));
            CHECK(time(collective::all_gather, collective_form::direct) == Approx(chunks * (message(chunk) + 2.0 * handover)));
            double halves = handover;
            for (int distance = 1; distance < n; distance *= 2) {
                auto const size = chunk / (2.0 * distance);
                halves += message(size) + handover + (distance > 1 ? sum(size) : 0.0);
            }
            CHECK(time(collective::reduce_scatter, collective_form::halving_doubling) == Approx(chunks * halves));
            auto const rounds = static_cast<double>(std::countr_zero(static_cast<unsigned>(n)));
            if (chunks == 1) {
                CHECK(time(collective::broadcast, collective_form::ring) == Approx(others * (message(chunk) + handover) + handover));
                // along the first child of each: its parent has sent to nobody before
                CHECK(time(collective::broadcast, collective_form::tree) == Approx(rounds * (message(chunk) + handover) + handover));
            }
            if (chunks == 1) {  // the parts double from round to round
                CHECK(time(collective::reduce, collective_form::tree) == Approx(rounds * (message(chunk) + sum(chunk) + handover) + handover));
                CHECK(time(collective::gather, collective_form::tree) == Approx(rounds * (latency + handover) + others * chunk / rate + handover));
                CHECK(time(collective::scatter, collective_form::tree) == Approx(rounds * (latency + handover) + others * part / rate + handover));
            }
            // sums of 8 bytes to the owner of a slice, floats of 4 bytes back
            CHECK(time(collective::all_reduce, collective_form::slice_owner) ==
                  Approx(chunks * (message(part) + sum(part) + message(part / 2.0) + 3.0 * handover)));
        }
    }
    // a ring in chunks of one is what the planner counts with
    collective_request<free_network> const plain{.size = {12'000}};
    CHECK(collective_time<free_network>(one_level(6, network_topology::full, latency, rate), plain)->count ==
          Approx(reduction_time({{latency}, {rate}}, {12'000}, 6).count));
}

TEST_CASE("collectives: contention never helps, halves scale")
{
    int played = 0;
    for (auto const topology : topologies) {
        for (auto const what : operations) {
            for (auto const form : forms) {
                for (int const n : {1, 2, 3, 5, 8}) {
                    auto const levels = one_level(n, topology, 3.0, 7.0);
                    collective_request<contended_network> shared{what, form, collective_scope::by_level, {10'000}, 3, 2, {0.25}, bytes_per_second{9.0}};
                    collective_request<free_network> alone{what, form, collective_scope::by_level, {10'000}, 3, 2, {0.25}, bytes_per_second{9.0}};
                    CAPTURE(static_cast<int>(topology), name_of(what), name_of(form), n);
                    auto const time = collective_time<contended_network>(levels, shared);
                    auto const free = collective_time<free_network>(levels, alone);
                    REQUIRE(time.has_value() == free.has_value());
                    if (!time) {
                        CHECK((!has_form(what, form) || (form == collective_form::halving_doubling && n % 2 == 1 && n > 1)));
                        continue;
                    }
                    ++played;
                    CHECK(*time >= *free - seconds{1e-9});
                    CHECK((n > 1) == (time->count > 0.0));
                    shared.handover = {0.125};
                    shared.memory = bytes_per_second{18.0};
                    CHECK(collective_time<contended_network>(one_level(n, topology, 1.5, 14.0), shared)->count == time->count / 2.0);
                    CHECK(*collective_time<free_network>(one_level(n, topology, 3.0, 8.0), alone) <= *free);
                    CHECK(*collective_time<free_network>(one_level(n, topology, 2.5, 7.0), alone) <= *free);
                }
            }
        }
    }
    CHECK(played > 150);
}

TEST_CASE("collectives: levels are gone through in turn, or not")
{
    std::vector<network_level<>> const levels{{4, network_topology::switched, {{1.0}, {100.0}}}, {3, network_topology::switched, {{10.0}, {5.0}}}};
    collective_request<contended_network> request{.size = {12'000}};
    auto const by_level = collective_time<contended_network>(levels, request);
    request.scope = collective_scope::all_ranks;
    auto const flat = collective_time<contended_network>(levels, request);
    REQUIRE((by_level && flat));
    CHECK(*by_level != *flat);
    // phases of an all_reduce of 12,000 bytes: 3,000 between the nodes
    auto const phases = phases_of<modelled_link>(collective::all_reduce, collective_scope::by_level, {12'000}, levels);
    CHECK(phases == std::vector<collective_phase>{{collective::reduce_scatter, 0, 1, 4, {12'000}},
                                                  {collective::all_reduce, 1, 4, 3, {3'000}},
                                                  {collective::all_gather, 0, 1, 4, {3'000}}});
    auto const gathered = phases_of<modelled_link>(collective::all_gather, collective_scope::by_level, {10}, levels);
    CHECK(gathered == std::vector<collective_phase>{{collective::all_gather, 1, 4, 3, {10}}, {collective::all_gather, 0, 1, 4, {30}}});
    request.form = collective_form::slice_owner;
    CHECK(collective_time<contended_network>(levels, request));
}

TEST_CASE("collectives: what cannot be is refused in a sentence")
{
    auto const levels = one_level(6, network_topology::ring, 1.0, 1.0);
    auto const refused = [&](collective_request<contended_network> const& request) { return collective_time<contended_network>(levels, request).error(); };
    CHECK(refused({.operation = collective::broadcast, .form = collective_form::halving_doubling}) == "there is no broadcast as halving_doubling");
    CHECK(refused({.form = collective_form::halving_doubling}) == "all_reduce as halving_doubling needs a power of two of ranks, not 6");
    CHECK(refused({.size = {-1}}) ==
          "all_reduce as ring of -1 bytes in 1 chunks, 1 at once: expected 0 to 2^62 bytes over all ranks, 1 to 2^20 chunks and at least 1 at once");
    CHECK(refused({.handover = {-1.0}}) == "all_reduce as ring: a hand-over takes a finite time of at least 0");
    CHECK(refused({.memory = bytes_per_second{0.0}}) == "all_reduce as ring: the rate at which memory adds is above zero and finite");
    CHECK(refused({.size = {1 << 30}, .chunks = 1 << 10}).empty());
    std::vector<network_level<integer_link>> const slow{{4, network_topology::ring, {1.0, {1e-12}}}};
    CHECK(collective_time<integer_contended_network>(slow, {.size = {1 << 30}}).error() ==
          "all_reduce takes more than the largest time of this network model (2^63 - 1 ns where time is whole)");
}
