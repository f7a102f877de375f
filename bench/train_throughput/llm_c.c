// SPDX-License-Identifier: Apache-2.0
// The same training steps by llm.c's train_gpt2.c (github.com/karpathy/llm.c, the version with a padded vocabulary),
// whose folder the compiler is given: GPT-2 124M, fp32, OpenMP, made from random weights instead of a checkpoint.
// Prints a last line in JSON, with tokens per second. bench_train_throughput compiles and starts it when given where llm.c is.
//   llm_c <steps> <sequences> <tokens>

#define TESTING  // leaves out its main
#include "train_gpt2.c"

static float random_weight(uint64_t* state) // uniform within 0.035 of 0: a standard deviation of 0.02
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (float)((double)(*state >> 40) / (1 << 24) - 0.5) * 0.07F;
}

static int by_value(void const* a, void const* b)
{
    double const x = *(double const*)a;
    double const y = *(double const*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: llm_c <steps> <sequences> <tokens>\n");
        return 2;
    }
    int const steps = atoi(argv[1]);
    int const sequences = atoi(argv[2]);
    int const tokens = atoi(argv[3]);

    GPT2 model;
    memset(&model, 0, sizeof model);
    model.config = (GPT2Config){.max_seq_len = 1024, .vocab_size = 50257, .padded_vocab_size = 50304, .num_layers = 12, .num_heads = 12, .channels = 768};
    fill_in_parameter_sizes(model.param_sizes, model.config);
    for (int i = 0; i < NUM_PARAMETER_TENSORS; ++i) {
        model.num_parameters += model.param_sizes[i];
    }
    model.params_memory = malloc_and_point_parameters(&model.params, model.param_sizes);
    uint64_t state = 1;
    for (size_t i = 0; i < model.num_parameters; ++i) {
        model.params_memory[i] = random_weight(&state);
    }

    int* const text = malloc(sizeof(int) * (size_t)(sequences * tokens + 1));
    double* const seconds = malloc(sizeof(double) * (size_t)steps);
    for (int step = -2; step < steps; ++step) { // two to warm up
        for (int i = 0; i <= sequences * tokens; ++i) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            text[i] = (int)(state >> 56);
        }
        struct timespec start;
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        gpt2_forward(&model, text, text + 1, (size_t)sequences, (size_t)tokens);
        gpt2_zero_grad(&model);
        gpt2_backward(&model);
        gpt2_update(&model, 1e-4F, 0.9F, 0.95F, 1e-8F, 0.1F, step + 3);
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (step >= 0) {
            seconds[step] = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
        }
    }
    qsort(seconds, (size_t)steps, sizeof(double), by_value);
    double const step_s = seconds[steps / 2];
    printf("{\"step_s\": %.6f, \"tokens_per_s\": %.3f, \"loss\": %.4f}\n", step_s, sequences * tokens / step_s, (double)model.mean_loss);
    gpt2_free(&model);
    free(text);
    free(seconds);
    return 0;
}
