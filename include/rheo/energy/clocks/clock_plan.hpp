#pragma once
// SPDX-License-Identifier: Apache-2.0

// A clock plan as a value of the program's shape: its type carries the digest of the program that it was made for, so
// clocks for another schedule, size or placement do not compile. What a frontier chose on one day can be kept as a
// header and built into a program that plans nothing.

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A number for a program: placement and rows, instruction by instruction (FNV-1a; Fowler, Noll, Vo).
constexpr std::uint64_t program_digest(program const& p)
{
    std::uint64_t digest = 14695981039346656037U;
    auto const add = [&](std::uint64_t value) {
        for (int byte = 0; byte < 8; ++byte) {
            digest = (digest ^ ((value >> (8 * byte)) & 0xffU)) * 1099511628211U;
        }
    };
    add(p.placement.size());
    for (auto const row : p.placement) {
        add(static_cast<std::uint64_t>(row));
    }
    for (auto const& row : p.rows) {
        add(row.size());
        for (auto const& i : row) {
            add(static_cast<std::uint64_t>(i.kind) << 48U | static_cast<std::uint64_t>(static_cast<std::uint16_t>(i.stage)) << 32U |
                static_cast<std::uint32_t>(i.item));
        }
    }
    return digest;
}

/// The number of computations of a program.
constexpr std::size_t operations_of(program const& p)
{
    std::size_t count = 0;
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            count += is_compute(i.kind) ? 1U : 0U;
        }
    }
    return count;
}

/// Clocks for the computations of the program with this digest, by row and place.
template <std::uint64_t Program, std::size_t Operations>
struct clock_plan {
    seconds time;
    joules energy;  ///< of all devices over the iteration, waiting included
    std::array<megahertz, Operations> clocks;

    friend constexpr bool operator==(clock_plan const&, clock_plan const&) = default;
};

/// A program as a type: that of `Make`, a lambda without captures.
template <auto Make>
struct named_program {
    static constexpr std::uint64_t digest = program_digest(Make());
    static constexpr std::size_t operations = operations_of(Make());
};

template <auto Make>
inline constexpr named_program<Make> named{};

/// A computation with its clock.
struct clocked_instruction {
    int row;
    rheo::instruction instruction;
    megahertz clock;

    friend constexpr bool operator==(clocked_instruction, clocked_instruction) = default;
};

/// The program with the clocks of a plan that was made for it; a plan of another program does not compile.
template <auto Make, std::uint64_t Program, std::size_t Operations>
constexpr auto clocked(named_program<Make>, clock_plan<Program, Operations> const& plan)
{
    constexpr bool same = named_program<Make>::digest == Program && named_program<Make>::operations == Operations;
    static_assert(same, "rheo: this clock plan was made for another program");
    std::array<clocked_instruction, Operations> result{};
    if constexpr (same) {
        auto const p = Make();
        std::size_t k = 0;
        for (std::size_t row = 0; row < p.rows.size(); ++row) {
            for (auto const& i : p.rows[row]) {
                if (is_compute(i.kind)) {
                    result[k] = {static_cast<int>(row), i, plan.clocks[k]};
                    ++k;
                }
            }
        }
    }
    return result;
}

/// A plan at real clocks as a plan of the program. @pre it was made from a frontier of that program
template <auto Make>
constexpr auto clock_plan_of(named_program<Make>, frontier const& f, clocked_plan const& plan)
{
    clock_plan<named_program<Make>::digest, named_program<Make>::operations> result{plan.time, total_energy(f, plan.cost, plan.time), {}};
    expects(plan.options.size() == result.clocks.size(), "a clock plan has a clock for each computation of its program");
    for (std::size_t k = 0; k < result.clocks.size(); ++k) {
        result.clocks[k] = plan.options[k].clock;
    }
    return result;
}

/// The plan as a header, the constant `name` in namespace rheo_plan. @pre the plan was made for the program
template <class OnlyWhenCalled = void>
std::string to_header(program const& p, frontier const& f, clocked_plan const& plan, std::string_view name = "plan")
{
    expects(plan.options.size() == operations_of(p), "a clock plan has a clock for each computation of its program");
    auto const number = [](double value) {
        char digits[32];
        return std::string{digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
    };
    std::string text =
        "#pragma once\n// SPDX-License-Identifier: Apache-2.0\n\n"
        "// A clock plan in MHz, by rank and place in its row, as `rheo frontier --emit-header` writes it.\n\n"
        "#include \"rheo/energy/clocks/clock_plan.hpp\"\n\nnamespace rheo_plan {\n\n";
    char digest[32];
    auto const end = std::to_chars(digest, digest + sizeof digest, program_digest(p), 16).ptr;
    text += "inline constexpr rheo::clock_plan<0x" + std::string{digest, end} + "U, " + std::to_string(plan.options.size()) + "> " + std::string{name} +
            "{\n    {" + number(plan.time.count) + "},\n    {" + number(total_energy(f, plan.cost, plan.time).count) + "},\n    {{\n";
    std::size_t k = 0;
    for (auto const& row : p.rows) {
        std::string line;
        for (auto const& i : row) {
            if (is_compute(i.kind)) {
                line += (line.empty() ? "        {" : ", {") + number(plan.options[k++].clock.count) + "}";
            }
        }
        text += line.empty() ? "" : line + ",\n";
    }
    return text + "    }},\n};\n\n}  // namespace rheo_plan\n";
}

}  // namespace rheo::inline v0
