/* Functions that print or parse the parts of a graph's text. Each does both, by the mode of its CiTextIo. */
#ifndef CI_IR_GRAPH_TEXT_H
#define CI_IR_GRAPH_TEXT_H

#include "ir/text_common.h"

typedef struct CiGraphIo {
    CiTextIo io;
    CiGraph *g;
    CiMap *values; /* read: id + 1 of a node, or the address of an interned input name -> CiNode */
} CiGraphIo;

CiNode *ci_graph_io_value(CiGraphIo *p, CiNode *node); /* %3, in0 */
void ci_graph_io_nodes(CiGraphIo *p, const CiBlock *block);
void ci_graph_io_results(CiGraphIo *p, CiBlock *block, const char *word); /* return %3, in0 */

#endif
