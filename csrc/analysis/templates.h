/* Kinds of templates: which kernels are of one, and how their axes run. A kind
 * is a row of ir/templates.def and the file of its name. */
#ifndef CI_ANALYSIS_TEMPLATES_H
#define CI_ANALYSIS_TEMPLATES_H

#include "analysis/labels.h"

typedef struct CiTemplateKind {
    /* The builder writes all loops of the kernel: nests join in any order, and no stage has rows. */
    bool is_whole;
    /* True if a kernel should be of the kind on the machine. */
    bool (*fits)(CiSym *sym, const CiMachine *machine, const CiKernel *kernel);
    void (*label)(CiLabeller *l); /* of a kernel that fits */
    /* NULL, or why a kernel is not of the kind. */
    const char *(*why_not)(CiSym *sym, const CiKernel *kernel);
} CiTemplateKind;

#define TEMPLATE(kind, cpu, gpu) extern const CiTemplateKind ci_template_##kind;
#include "ir/templates.def"

/* The first kind that a kernel fits; CI_TEMPLATE_none: it fits none. */
CiTemplate ci_template_fit(CiSym *sym, const CiMachine *machine, const CiKernel *kernel);
void ci_template_label(CiLabeller *l); /* as the kernel's kind does */
/* True if a kernel fits a kind whose builder writes all loops. */
bool ci_template_fits_whole(CiSym *sym, const CiMachine *machine, const CiKernel *kernel);
bool ci_template_is_whole(const CiKernel *kernel); /* it is of such a kind */
/* NULL, or why the kernel is not of its kind; it may have none. */
const char *ci_template_why_not(CiSym *sym, const CiKernel *kernel);
/* kernel_verify.c: fails where a kernel is not as kernel.h says. */
void ci_kernels_verify(const CiKernels *kernels);

/* True if the value of an operation depends on the symbol. */
bool ci_body_varies(const CiBody *body, int position, const CiExpr *symbol);
/* The parts of a product. */
typedef struct CiProduct {
    const CiNest *nest;
    int row, column;      /* outer axes; the column is the last one */
    int left, right;      /* factors in the body: of the row and the step, of the column and it */
    const CiExpr *length; /* steps */
} CiProduct;
/* Rows of a tile of registers, at most: each has an address in another register. */
#define CI_PRODUCT_ROWS 8
/* A nest that adds up products is among its own. */
bool ci_kernel_has_product(const CiKernel *kernel);
/* NULL where its loops are those of a product, which *out then describes. */
const char *ci_kernel_why_no_product(const CiKernel *kernel, CiProduct *out);
int ci_product_panel(const CiExpr *columns, int tile); /* columns of the panel */
/* The parts of an attention: scores, their maximum in each row, weights, their sum, and the products of
 * weights and values. */
typedef struct CiAttention {
    const CiNest *scores, *elements, *top, *weights, *sum, *product; /* elements: of which the maximum is, or NULL */
    const CiNest *quotients; /* weights divided by their sum, which the second product has then; or NULL */
    CiDtype narrow;          /* of the factors: f16 or bf16, or that of the sums */
} CiAttention;
/* NULL where the nests are those of an attention, which *out then describes. */
const char *ci_kernel_why_no_attention(CiSym *sym, const CiKernel *kernel, CiAttention *out);
/* Rows that are finished in a unit; columns that one walks down at least: no block has more. */
#define CI_MARGINS_ROWS 512
#define CI_MARGINS_COLUMNS 128

#endif
