/* Kinds of templates: predicates that say which kernels fit a kind, and the labels of their axes. A kind has a row in
 * ir/templates.def and a file of its name. */
#ifndef CI_ANALYSIS_TEMPLATES_H
#define CI_ANALYSIS_TEMPLATES_H

#include "analysis/labels.h"

typedef struct CiTemplateKind {
    /* The builder writes all loops of the kernel: nests join in any order, and no stage has rows. */
    bool is_whole;
    /* True if a kernel should be of the kind on the machine. */
    bool (*fits)(CiSym *sym, const CiMachine *machine, const CiKernel *kernel);
    void (*label)(CiLabeller *l); /* sets the labels of a kernel that fits */
    /* NULL, or why a kernel is not of the kind. */
    const char *(*why_not)(CiSym *sym, const CiKernel *kernel);
} CiTemplateKind;

#define TEMPLATE(kind, cpu, gpu) extern const CiTemplateKind ci_template_##kind;
#include "ir/templates.def"

/* The first kind that a kernel fits; CI_TEMPLATE_none: it fits none. */
CiTemplate ci_template_fit(CiSym *sym, const CiMachine *machine, const CiKernel *kernel);
void ci_template_label(CiLabeller *l); /* sets the labels by the kernel's kind */
/* True if a kernel fits a kind whose builder writes all loops. */
bool ci_template_fits_whole(CiSym *sym, const CiMachine *machine, const CiKernel *kernel);
bool ci_template_is_whole(const CiKernel *kernel);
/* NULL, or why the kernel does not fit its kind. A kernel without a kind gives NULL. */
const char *ci_template_why_not(CiSym *sym, const CiKernel *kernel);
/* kernel_verify.c: fails where a kernel is not as kernel.h says. */
void ci_kernels_verify(const CiKernels *kernels);

/* True if the value of an operation depends on the symbol. */
bool ci_body_varies(const CiBody *body, int position, const CiExpr *symbol);
/* The parts of a product. */
typedef struct CiProduct {
    const CiNest *nest;
    int row, column;      /* outer axes; the column is the last one */
    int left, right;      /* values of the factors in the body: left varies with row and step, right with column and step */
    const CiExpr *length; /* steps */
} CiProduct;
/* Maximum rows of a register tile: each row needs a register for its address. */
#define CI_PRODUCT_ROWS 8
/* True if one of the kernel's nests is a sum of products. */
bool ci_kernel_has_product(const CiKernel *kernel);
/* NULL if the kernel is a product, which *out then describes; else the reason. */
const char *ci_kernel_why_no_product(const CiKernel *kernel, CiProduct *out);
int ci_product_panel(const CiExpr *columns, int tile); /* columns of the panel */
/* The parts of an attention: scores, their maximum in each row, weights, their sum, and the products of
 * weights and values. */
typedef struct CiAttention {
    const CiNest *scores, *elements, *top, *weights, *sum, *product; /* elements: operand of the maximum, or NULL */
    const CiNest *quotients; /* weights divided by their sum, if the second product reads those; or NULL */
    CiDtype narrow;          /* dtype of the factors: f16, bf16, or the dtype of the sums */
} CiAttention;
/* NULL if the nests are an attention, which *out then describes; else the reason. */
const char *ci_kernel_why_no_attention(CiSym *sym, const CiKernel *kernel, CiAttention *out);
/* Template `margins`: rows that one unit finishes; minimum columns of a unit, the
 * elements of the largest block of pairwise summation. */
#define CI_MARGINS_ROWS 512
#define CI_MARGINS_COLUMNS 128

#endif
