/* The passes over loops. Each has a file; loops.def has their order. The scheduler gets the result of the last pass. */
#ifndef CI_LOOPS_LOOPS_H
#define CI_LOOPS_LOOPS_H

#include "base/options.h"
#include "analysis/access.h"
#include "analysis/choices.h"
#include "analysis/cost.h"
#include "ir/loop.h"
#include "ir/pass_plan.h"

typedef struct CiLoopRewriter {
    CiContext *ctx;
    CiSym *sym;
    CiLoops *loops;
    const CiMachine *machine;
    const CiOptions *options;
    const CiLoopScope *scope; /* the block that is rewritten */
} CiLoopRewriter;

typedef struct CiLoopPass {
    const char *name, *doc;
    bool is_needed; /* cannot be left out */
    bool (*applies)(const CiLoopRewriter *r);
    /* The pass has one of these functions, by the column `where` of loops.def. r->scope is the block's scope. */
    void (*program)(const CiLoopRewriter *r);
    void (*outer)(const CiLoopRewriter *r, CiItems *items);
    void (*inner)(const CiLoopRewriter *r, CiItems *items);
    void (*nests)(const CiLoopRewriter *r, CiNest *nest);
    void (*regions)(const CiLoopRewriter *r, CiItem *item);
} CiLoopPass;

/* The number of passes, and the pass at a position of their order. */
int ci_loop_pass_count(void);
const CiLoopPass *ci_loop_pass_at(int position);

void ci_loop_passes_run(CiLoops *loops, const CiMachine *machine, const CiOptions *options,
                        const CiPassPlan *plan);

#define CI_OF_program
#define CI_OF_outer , CiItems *items
#define CI_OF_inner , CiItems *items
#define CI_OF_nests , CiNest *nest
#define CI_OF_regions , CiItem *item
#define PASS(name, where, applies, is_needed, doc)                                                 \
    void ci_loops_##name(const CiLoopRewriter *r CI_OF_##where);
#include "loops/loops.def"
#undef PASS
#undef CI_OF_program
#undef CI_OF_outer
#undef CI_OF_inner
#undef CI_OF_nests
#undef CI_OF_regions

/* ---- functions that passes share ---- */

/* blocks.c. Appends the items of `more` to `to`. */
void ci_add_items(CiContext *ctx, CiItems *to, const CiItems *more);
/* Removes the item at a position. */
void ci_remove_item(CiItems *items, int at);
/* Returns a list with one item: a loop that contains `items`. */
CiItems ci_put_in_loop(CiContext *ctx, CiItems items, const CiExpr *var, const CiExpr *extent);
/* Replaces symbols of a nest. Afterwards `row` is the nest's only axis. */
void ci_nest_set_row(const CiLoopRewriter *r, CiNest *nest, int count, const CiExpr *const *from,
                     const CiExpr *const *to, CiAxis row);
/* Appends a nest of one point, `to[store] = load from[index]`, with the locations of `like`. The caller may
 * give it axes. */
CiNest *ci_add_copy(const CiLoopRewriter *r, CiItems *items, const CiNest *like, CiBuffer *to,
                    const CiExpr *store, CiBuffer *from, const CiExpr *index);
/* The load whose value the nest stores unchanged; NULL if the nest computes or stores at indices from data. */
const CiScalar *ci_copied_load(const CiNest *nest);
/* Replaces a symbol of a nest by a value, after copying the body. An axis whose extent depends on the symbol gets a new
 * variable. */
void ci_nest_change(const CiLoopRewriter *r, CiNest *nest, const CiExpr *symbol, const CiExpr *value);
/* An unused variable t0, t1, … of a loop of that many iterations. */
const CiExpr *ci_new_loop_variable(CiContext *ctx, CiSym *sym, const CiExpr *extent);
/* True if the iterations of the loop are enough work for several threads. */
bool ci_is_worth_threads(const CiMachine *machine, const CiItem *loop);

/* uses.c. ci_count_uses adds the number of reads and writes of each buffer by the items, regions included.
 * ci_count_all_uses counts those of the program, its results included. ci_first_use returns the first access that
 * certainly happens; CI_FIRST_nothing if there is none, or if a store before it may happen or not. */
typedef enum CiFirst { CI_FIRST_nothing, CI_FIRST_read, CI_FIRST_store } CiFirst;
void ci_count_uses(const CiItems *items, int *nreaders, int *nwriters);
void ci_count_all_uses(const CiLoops *loops, int **nreaders, int **nwriters);
CiFirst ci_first_use(const CiItems *items, const CiBuffer *buffer);

/* factor_axes.c: axis k of a nest becomes two, var = length*row + at. */
void ci_split_axis(CiLoops *loops, CiNest *nest, int k, const CiExpr *rows, const CiExpr *length);
/* An axis whose name no other axis has. */
const CiExpr *ci_new_axis(CiLoops *loops, const CiExpr *extent);

#endif
