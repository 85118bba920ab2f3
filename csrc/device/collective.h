/* Collectives: operations that the members of a group do together. A member is a device of this or
 * of another process; a device may be a member of several groups, which are found by their names.
 *
 * The key of a call has the group's name and what else the operation depends on:
 *
 *   all_reduce, reduce_scatter   NAME sum|prod|max|min
 *   all_gather                   NAME
 *   broadcast                    NAME root=2
 *   send_recv                    NAME 0>1 1>2      members that send, and to whom */
#ifndef CI_DEVICE_COLLECTIVE_H
#define CI_DEVICE_COLLECTIVE_H

#include "device/device.h"

#define CI_GROUP_NAME 128 /* bytes of a name, with its end */

typedef struct CiGroups CiGroups;
CiGroups *ci_groups_new(void); /* NULL without memory */
void ci_groups_free(CiGroups *groups);

/* Makes the queue's device a member, by the name that calls have (CiDevice.group_open). CI_ERR_VALUE: it is one
 * already, or the name or the rank is not accepted. */
int32_t ci_group_open(const CiQueue *queue, const char *name, const CiGroupName *unique, int rank,
                      int count, int64_t timeout_ms);
/* Ends the membership, if there is one. */
void ci_group_close(const CiQueue *queue, const char *name);

/* Starts what a call says, after the work that the queue's stream has. CI_ERR_VALUE: the device is no member
 * of the group, or the key is not that of the operation. */
int32_t ci_collective_start(const CiQueue *queue, CiOp op, const CiExternCall *call);
/* Later work of the queue's stream waits for the collectives of the key's group. */
int32_t ci_collective_join(const CiQueue *queue, const char *key);

#endif
