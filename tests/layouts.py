"""A small file of every layout, for tests: its text, and the votes in it."""

LEFT, TIE, RIGHT = 1, 0, -1

# The columns that matter and some others; then who, which two, and what was said.
LAYOUTS = {
    "canonical": (
        "id,user,left,right,winner\n1,ann,tea,milk,left\n2,bob,milk,tea,tie\n3,bob,tea,milk,right\n",
        [("ann", "tea", "milk", LEFT), ("bob", "milk", "tea", TIE), ("bob", "tea", "milk", RIGHT)],
    ),
    "canonical, numbers": (
        "user,left,right,outcome\nann,tea,milk,1\nbob,milk,tea,0\nbob,tea,milk,-1\n",
        [("ann", "tea", "milk", LEFT), ("bob", "milk", "tea", TIE), ("bob", "tea", "milk", RIGHT)],
    ),
    "evalica": (
        "worker,left,right,winner\nw1,tea,milk,left\nw2,milk,tea,tie\nw2,milk,tea,right\n",
        [("w1", "tea", "milk", LEFT), ("w2", "milk", "tea", TIE), ("w2", "milk", "tea", RIGHT)],
    ),
    "crowd-kit": (
        "task,worker,left,right,label\nt1,w1,tea,milk,tea\nt2,w2,tea,milk,milk\nt3,w2,left,tea,left\n",
        [("w1", "tea", "milk", LEFT), ("w2", "tea", "milk", RIGHT), ("w2", "left", "tea", LEFT)],
    ),
    "crowd-kit, before 1.0": (
        "performer,left,right,label\np1,tea,milk,milk\n",
        [("p1", "tea", "milk", RIGHT)],
    ),
    "arena": (
        "question_id,model_a,model_b,winner,judge,turn\n"
        "81,gpt,llama,model_a,j1,1\n82,llama,gpt,model_b,j1,1\n83,gpt,llama,tie,j2,2\n"
        "84,gpt,llama,tie (bothbad),j2,2\n85,gpt,llama,both_bad,j3,2\n",
        [("j1", "gpt", "llama", LEFT), ("j1", "llama", "gpt", RIGHT), ("j2", "gpt", "llama", TIE),
         ("j2", "gpt", "llama", TIE), ("j3", "gpt", "llama", TIE)],
    ),
    "arena, user": (
        "user,model_a,model_b,winner\nu1,gpt,llama,model_b\n",
        [("u1", "gpt", "llama", RIGHT)],
    ),
    "wmt": (
        "srclang,trglang,judgeID,system1Id,system1rank,system2Id,system2rank\n"
        "ces,eng,j1,uedin,1,online-A,3\nces,eng,j1,uedin,2,online-A,2\nces,eng,j2,uedin,5,online-A,4\n",
        [("j1", "uedin", "online-A", LEFT), ("j1", "uedin", "online-A", TIE),
         ("j2", "uedin", "online-A", RIGHT)],
    ),
    "alpaca-eval": (
        "instruction,output_1,generator_1,output_2,generator_2,annotator,preference\n"
        "Hi,x,gpt,y,llama,a1,1\nHi,x,gpt,y,llama,a1,2.0\nHi,x,gpt,y,llama,a2,1.5\n",
        [("a1", "gpt", "llama", LEFT), ("a1", "gpt", "llama", RIGHT), ("a2", "gpt", "llama", TIE)],
    ),
    "alpaca-eval, outputs": (
        "annotator,output_1,output_2,preference\na1,short answer,long answer,2\n",
        [("a1", "short answer", "long answer", RIGHT)],
    ),
    "gavel": (
        "Annotator ID,Winner ID,Loser ID,Time\n3,12,7,2016-09-18 14:02\n3,7,9,2016-09-18 14:05\n",
        [("3", "12", "7", LEFT), ("3", "7", "9", LEFT)],
    ),
    "winner-loser": (
        "user,winner,loser\nann,tea,milk\nbob,milk,tea\n",
        [("ann", "tea", "milk", LEFT), ("bob", "milk", "tea", LEFT)],
    ),
    "pwcmp": (
        "observer,scene,condition_A,condition_B,is_A_selected\no1,s,jpeg,avif,0\no1,s,jpeg,avif,1\n",
        [("o1", "jpeg", "avif", RIGHT), ("o1", "jpeg", "avif", LEFT)],
    ),
    "comparative-judgement": (
        "judge,candidate_chosen,candidate_not_chosen,timeTaken\nj1,AB12,CD34,4.1\nj2,CD34,EF56,9\n",
        [("j1", "AB12", "CD34", LEFT), ("j2", "CD34", "EF56", LEFT)],
    ),
    "comparative-judgement, other names": (
        "id,judgeId,chosen,notChosen\n1,j1,AB12,CD34\n2,j2,CD34,EF56\n",
        [("j1", "AB12", "CD34", LEFT), ("j2", "CD34", "EF56", LEFT)],
    ),
    "comparative-judgement, won and lost": (
        "judge,won,lost\nj1,AB12,CD34\n", [("j1", "AB12", "CD34", LEFT)],
    ),
    "label-studio": (
        "annotation_id,completed_by,left,right,selected\n1,ann@home,tea,milk,left\n"
        "2,bob@home,tea,milk,right\n",
        [("ann@home", "tea", "milk", LEFT), ("bob@home", "tea", "milk", RIGHT)],
    ),
    "label-studio, short": (
        "annotator,left,right,selected\na1,tea,milk,right\n", [("a1", "tea", "milk", RIGHT)],
    ),
    "potato": (
        "instance_id,user_id,left,right,selection\ni1,u1,tea,milk,A\ni1,u2,tea,milk,B\n"
        "i2,u2,milk,water,tie\n",
        [("u1", "tea", "milk", LEFT), ("u2", "tea", "milk", RIGHT), ("u2", "milk", "water", TIE)],
    ),
    "rapidata": (
        "user,left,right,votedFor,country\nu1,a.jpg,b.jpg,b.jpg,DE\nu2,a.jpg,b.jpg,a.jpg,KE\n",
        [("u1", "a.jpg", "b.jpg", RIGHT), ("u2", "a.jpg", "b.jpg", LEFT)],
    ),
    "argilla": (
        'user_id,responses\nu1,tea > milk\nu2,"[""milk"", ""tea""]"\nu3,tea = milk\n',
        [("u1", "tea", "milk", LEFT), ("u2", "milk", "tea", LEFT), ("u3", "tea", "milk", TIE)],
    ),
    "potato-ranking": (
        'user_id,rank_order\nu1,"tea,milk"\nu2,milk=tea\n',
        [("u1", "tea", "milk", LEFT), ("u2", "milk", "tea", TIE)],
    ),
    "rankings": (
        "user,ranking\nann,tea > milk\nbob,milk=tea\n",
        [("ann", "tea", "milk", LEFT), ("bob", "milk", "tea", TIE)],
    ),
    "ranks": (
        "user,rank1,rank2\nann,tea,milk\nbob,milk,tea\n",
        [("ann", "tea", "milk", LEFT), ("bob", "milk", "tea", LEFT)],
    ),
    "best-worst": (
        "user,item1,item2,best,worst\nann,tea,milk,tea,milk\nbob,tea,milk,milk,tea\n",
        [("ann", "tea", "milk", LEFT), ("bob", "milk", "tea", LEFT)],
    ),
}  # fmt: skip
