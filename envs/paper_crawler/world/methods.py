"""Methods of the full world, eight names each, the usual one first."""

METHODS = """
M transformer attention, self attending layers, query key weighting, multi head focus, token
    mixing by relevance, softmax alignment blocks, scaled dot product stacks, attentive encoders.
M diffusion models, iterative denoiser priors, score based sampling, noise reversal chains,
    langevin refinement, gradual corruption inversion, stochastic heat processes, annealed score
    fields.
M contrastive learning, positive negative pairing, instance discrimination, infonce objectives,
    similarity pulling losses, augmented view agreement, siamese repulsion, metric embedding
    pretraining.
M graph networks, message passing, node neighbourhood aggregation, relational convolutions, vertex
    edge propagation, topology aware layers, adjacency encoders, structured link nets.
M reinforcement learning, reward maximisation, policy gradients, trial and error agents, value
    iteration training, markov decision optimisers, temporal difference updates, actor critic
    schemes.
M imitation learning, behaviour cloning, demonstration copying, apprenticeship schemes, expert
    mimicry, teacher trajectory replay, inverse reward recovery, observational mimesis.
M bayesian inference, posterior estimation, probabilistic belief updating, credible interval
    models, hierarchical priors, conjugate likelihoods, monte carlo marginals, evidence
    integration.
M variational autoencoders, latent bottleneck codes, evidence lower bounds, amortised encoders,
    reparameterised compressors, elbo driven representations, stochastic code books, hidden factor
    decoders.
M adversarial training, generator discriminator games, minimax perturbation, gan objectives,
    critic versus forger setups, worst case examples, two player rivalry, attack hardened fitting.
M knowledge distillation, teacher student compression, soft target transfer, dark logits, mentor
    network shrinking, small model imitation of large, response matching compaction, ensemble
    squeezing.
M network pruning, weight removal, sparse connection trimming, lottery tickets, magnitude
    thinning, redundant unit deletion, synapse cutting, structured slimming.
M low bit quantisation, integer arithmetic, eight digit weights, precision lowering, rounded
    parameter codes, binary activations, fixed point conversion, coarse numeric formats.
M meta learning, learning to learn, few shot adaptation, episodic task tuning, fast weight
    initialisation, maml style optimisation, across task generalisers, rapid new class
    acquisition.
M federated learning, private device averaging, decentralised client training, on device
    aggregation, cross silo updates, data local collaboration, secure gradient pooling, edge
    participant rounds.
M curriculum learning, easy to hard ordering, staged difficulty, graded example pacing,
    progressive training schedule, self paced complexity, simple first syllabus, sample
    sequencing.
M self training, pseudo labels, bootstrapped annotation, confident unlabelled reuse, noisy student
    loops, semi supervised propagation, entropy minimisation, automatic relabelling.
M memory networks, external storage cells, differentiable notebooks, recurrent gates, long short
    term units, read write controllers, associative recall stores, persistent state slots.
M retrieval augmentation, nonparametric lookup, neighbour fetching, external corpus grounding,
    document conditioned models, datastore interpolation, passage supported reasoning, search
    backed generation.
M mixture of experts, gated specialists, conditional computation, sparse routing, switch layers,
    divide and conquer submodels, top k dispatchers, modular committees.
M evolutionary search, genetic algorithms, population based tuning, mutation and crossover,
    natural selection heuristics, swarm optimisation, neuroevolution, darwinian operators.
M kernel machines, support vectors, reproducing hilbert spaces, gaussian processes, margin
    maximisers, covariance functions, radial basis expansions, nystrom features.
M tree ensembles, random forests, boosted stumps, gradient boosting, decision rule bagging, cart
    committees, leafwise additive learners, split based aggregation.
M causal inference, treatment effect estimation, counterfactual reasoning, do calculus,
    instrumental variables, confounder adjustment, intervention analysis, structural equation
    models.
M neurosymbolic reasoning, logic guided nets, differentiable rules, theorem driven learning, first
    order constraints, inductive programming, symbol manipulation hybrids, deductive embeddings.
M physics informed networks, differential equation residuals, conservation constrained nets, pde
    regularisation, hamiltonian priors, mechanistic surrogates, governing law losses, operator
    learning.
M spectral methods, fourier features, frequency domain filters, wavelet decompositions,
    eigenvector bases, harmonic expansions, laplacian eigenmaps, fast transform layers.
M normalising flows, invertible mappings, exact likelihood bijections, jacobian determinants,
    coupling transforms, density warping, reversible generators, change of variables.
M prompt engineering, in context examples, instruction phrasing, soft prefix tuning, zero shot
    templates, chain of thought cues, frozen model steering, demonstration prefixing.
M active learning, uncertainty sampling, label budget queries, annotator in the loop, informative
    point selection, oracle questioning, query by committee, pool based acquisition.
M state space models, linear recurrences, structured sequence kernels, kalman layers, selective
    scan blocks, hidden dynamical systems, long convolution mixers, continuous time memory.
"""
