// Prints llama.cpp's logits over one token sequence, in the form of `causeway logits --json`.
//
// Standard input is four lines of numbers: threads; token ids; positions; ids whose logits are
// wanted. Standard output is one JSON line a position. All else is llama.cpp's own default:
// keys and values in f16, weights repacked, physical batches of 512, flash attention on `auto`.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "llama.h"

struct numbers {
    int32_t * at;
    int32_t   count;
};

static void quiet(enum ggml_log_level level, const char * text, void * user) {
    if (level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
    (void) user;
}

static _Noreturn void refuse(const char * why) {
    fprintf(stderr, "llama-logits: %s\n", why);
    exit(1);
}

// One line of numbers with blanks between.
static struct numbers read_numbers(void) {
    char * line = NULL;
    size_t room = 0;
    if (getline(&line, &room, stdin) < 0) {
        refuse("standard input has fewer than four lines");
    }
    struct numbers numbers = { NULL, 0 };
    char * rest = line;
    for (;;) {
        char * end;
        const long number = strtol(rest, &end, 10);
        if (end == rest) {
            break;
        }
        numbers.at = realloc(numbers.at, (size_t) (numbers.count + 1) * sizeof *numbers.at);
        if (numbers.at == NULL) {
            refuse("no memory for the numbers");
        }
        numbers.at[numbers.count++] = (int32_t) number;
        rest = end;
    }
    free(line);
    return numbers;
}

static double log_sum_exp(const float * row, int32_t count) {
    double max = row[0];
    for (int32_t id = 1; id < count; id++) {
        max = row[id] > max ? row[id] : max;
    }
    double sum = 0;
    for (int32_t id = 0; id < count; id++) {
        sum += exp(row[id] - max);
    }
    return max + log(sum);
}

static void print_row(int32_t position, const float * row, int32_t vocab, struct numbers wanted) {
    printf("{\"position\":%d,\"logsumexp\":%.17g,\"at\":[", position, log_sum_exp(row, vocab));
    for (int32_t i = 0; i < wanted.count; i++) {
        const int32_t id = wanted.at[i];
        if (id < 0 || id >= vocab) {
            refuse("an id is outside the vocabulary");
        }
        printf("%s[%d,%.9g]", i == 0 ? "" : ",", id, row[id]);
    }
    puts("]}");
}

int main(int argc, char ** argv) {
    if (argc != 2) {
        refuse("usage: llama-logits FILE.gguf <NUMBERS");
    }
    const struct numbers threads = read_numbers();
    const struct numbers ids = read_numbers();
    const struct numbers positions = read_numbers();
    const struct numbers wanted = read_numbers();
    if (threads.count != 1 || ids.count < 1) {
        refuse("one number of threads and at least one token id are needed");
    }

    llama_log_set(quiet, NULL);
    llama_backend_init();
    struct llama_model * model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (model == NULL) {
        refuse("the model does not load");
    }
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t) ids.count;
    params.n_batch = (uint32_t) ids.count;
    params.n_threads = threads.at[0];
    params.n_threads_batch = threads.at[0];
    struct llama_context * context = llama_init_from_model(model, params);
    if (context == NULL) {
        refuse("there is no context of that length");
    }

    struct llama_batch batch = llama_batch_init(ids.count, 0, 1);
    batch.n_tokens = ids.count;
    for (int32_t i = 0; i < ids.count; i++) {
        batch.token[i] = ids.at[i];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 0;
    }
    for (int32_t i = 0; i < positions.count; i++) {
        if (positions.at[i] < 0 || positions.at[i] >= ids.count) {
            refuse("a position is outside the sequence");
        }
        batch.logits[positions.at[i]] = 1;
    }
    if (llama_decode(context, batch) != 0) {
        refuse("the pass failed");
    }
    const int32_t vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    for (int32_t i = 0; i < positions.count; i++) {
        print_row(positions.at[i], llama_get_logits_ith(context, positions.at[i]), vocab, wanted);
    }
    return 0;
}
