"""Topics of the full world: seeing, language and robots; eight names each, the usual one first."""

TOPICS = """
D computer vision, visual computing, machine sight, optical perception, pictorial intelligence,
    image science, visual cognition, camera intelligence.
F object categories, everyday things, entity kinds, item classes, thing perception, visual nouns,
    appearance groups, instances in photographs.
S bird identification, avian species naming, ornithological classification, feathered animal
    recognition, songbird sorting, plumage categorising, wildfowl labelling, fledgling taxonomy.
S food logging, meal photography, dish cataloguing, cuisine tagging, nutrition snapshots, plate
    inventories, grocery glimpses, edible diaries.
S logo spotting, brand mark finding, trademark discovery, emblem detection, insignia localisation,
    company symbol search, badge pinpointing, corporate crest hunting.
S plant disease diagnosis, crop illness screening, leaf blight inspection, foliar infection
    checking, vegetation pathology triage, orchard sickness grading, botanical malady scoring,
    agronomic rot assessment.
S handwriting reading, manuscript transcription, cursive decipherment, penmanship digitising,
    scribbled note conversion, ink stroke parsing, longhand interpretation, calligraphy decoding.
F video understanding, footage semantics, cinema insight, moving imagery, recorded scenes, film
    perception, cinematic viewing, animated pixels.
S action localisation, activity timing, gesture boundary finding, deed segmentation, behaviour
    spotting in time, movement interval marking, exercise moment extraction, happening
    delimitation.
S pedestrian tracking, walker following, crowd trajectory linking, passerby association, foot
    traffic tracing, stroller pursuit, person path stitching, bystander monitoring.
S sports highlights, match summarisation, game recap mining, athletic moment picking, tournament
    digest editing, league clip curation, contest best bits, stadium replay selection.
S lip reading, silent mouth decoding, visual speech, oral shape transcription, labial motion
    interpretation, facial utterance inference, viseme sequencing, mouthing comprehension.
S surveillance anomalies, suspicious incident discovery, security camera irregularities, guard
    feed outliers, unusual event alarms, watchtower oddities, theft notice systems, abnormal
    loitering warning.
F spatial vision, stereoscopic worlds, three dimensional layout, volumetric shape, surface form,
    solid world building, euclidean world views, perspective composition.
S depth estimation, distance inference, range guessing, farness regression, stereo disparity,
    proximity mapping, remoteness measuring, monocular gauging.
S point cloud registration, lidar scan alignment, laser sweep matching, rangefinder cloud fitting,
    sparse dot merging, scanned fragment joining, echo constellation docking, sampled shell
    superposition.
S indoor reconstruction, room modelling, interior rebuilding, apartment meshing, household
    digitisation, furnished chamber capture, dwelling replication, floorplan recovery.
S pose recovery, body skeleton fitting, limb joint estimation, posture inference, human stance
    lifting, anatomical keypoints, torso articulation, mannequin alignment.
S camera calibration, lens parameter solving, intrinsic correction, optics self adjustment,
    shutter geometry tuning, focal length rectifying, distortion coefficient finding, rig
    alignment checks.
F image synthesis, picture fabrication, visual rendering, pixel forging, artwork computing,
    graphic craft, illustration automation, canvas artistry.
S face editing, portrait manipulation, visage retouching, countenance alteration, selfie
    transformation, likeness morphing, headshot modification, facial restyling.
S photo denoising, snapshot cleaning, grain removal, speckle suppression, shot noise filtering,
    static scrubbing, low light purifying, sensor hiss reduction.
S super resolution, detail upscaling, sharpness enlargement, fine texture magnification, megapixel
    upsampling, blurry zoom restoration, definition boosting, crispness expansion.
S sketch colouring, line drawing tinting, cartoon painting, outline hue filling, manga shading,
    doodle pigmentation, contour chroma completion, comic palette transfer.
S garment try on, virtual dressing, clothing overlay, outfit swapping, apparel fitting rooms,
    wardrobe simulation, fashion draping, costume compositing.
D language processing, text technology, linguistic computing, verbal intelligence, word science,
    computational philology, language engineering, discourse technology.
F prose machinery, prose automation, computer essayists, essayistic programs, wording engines,
    literary computing, linguistic expression, paragraph craft.
S story writing, tale spinning, fiction composition, plot narration, fable invention, novel
    drafting, anecdote construction, saga crafting.
S news summarisation, press digesting, journalistic condensation, headline abstracting, article
    shortening, bulletin compression, reportage abridgement, editorial boiling down.
S code completion, program filling, software autocompletion, source snippet suggestion, script
    continuation, developer line prediction, function body infilling, coding assistant hints.
S poetry creation, verse making, rhyme production, sonnet composing, lyric invention, stanza
    building, haiku synthesis, ballad authorship.
S machine translation, cross lingual conversion, foreign sentence rendering, interlingual
    transfer, tongue switching, bilingual rewriting, multilingual paraphrase, idiom carrying over.
F literature insight, fact gathering, facts out of pages, textual discernment, bulk perusal,
    library digestion, literature sifting, archival insight.
S named entity tagging, proper noun marking, person and place spotting, mention labelling,
    appellation finding, title noun chunking, surname detection, toponym annotation.
S relation mining, link discovery, tie extraction, connection harvesting, association finding
    between entities, kinship triples, bond inference, affiliation unearthing.
S table parsing, spreadsheet reading, grid comprehension, cell layout analysis, tabular
    interpretation, row column decoding, ledger sheet understanding, matrix document intake.
S event timelines, chronology building, occurrence ordering, historical sequence charting, dated
    happening arrangement, temporal storyline assembly, milestone listing, annals compilation.
S patent analysis, invention filing study, intellectual property reading, claim dissection,
    innovation document review, licence text examination, inventor disclosure scanning, prior art
    checks.
F dialogue technology, chatty software, interactive discourse, spoken partners, colloquy engines,
    verbal exchange computing, talkative interfaces, interlocutor design.
S customer support, helpdesk answering, service ticket handling, complaint resolution, client
    assistance bots, user aid hotlines, call centre relief, consumer care replies.
S emotional companionship, empathetic talk, consoling conversation, affective friendship,
    sympathetic listening, comforting chatter, mood aware rapport, tender confiding.
S negotiation bots, bargaining agents, haggling machines, deal making programs, price dispute
    talkers, compromise seekers, settlement brokers, barter conversationalists.
S persona consistency, character stability, identity coherence, role faithfulness, personality
    upkeep, self description agreement, profile adherence, alter ego preservation.
S tutoring conversations, teaching dialogues, socratic instruction, pupil coaching talk, homework
    guidance chat, lesson question sessions, mentor exchanges, learner interrogation.
F talk acoustics, oral technology, acoustic language, utterance computing, phonetic technology,
    sonic linguistics, microphone science, aural words.
S speaker verification, voice authentication, talker identity proof, vocal passport checks, caller
    confirmation, voiceprint matching, orator attestation, larynx biometrics.
S accent conversion, dialect shifting, pronunciation transfer, regional speech remapping, brogue
    neutralising, intonation relocation, native sound adaptation, drawl transformation.
S keyword wake up, trigger phrase detection, hotword listening, activation term spotting,
    attention call recognition, summoning word sensing, command start alerts, voice switch
    arousal.
S noisy transcription, robust dictation, street audio captioning, clamour resistant recognition,
    babble tolerant typing, din proof stenography, cafeteria subtitling, rumble hardened
    shorthand.
S prosody modelling, rhythm and stress control, speech melody design, cadence shaping, tonal
    contour planning, emphasis placement, lilt generation, inflection steering.
D robotics, autonomous machines, intelligent mechanisms, embodied automation, mechanical agents,
    robot science, cybernetic devices, actuated intelligence.
F robot handwork, mechanical dexterity, arm skill, gripper skill, object handling automation, end
    effector craft, manual robotics, handy hardware.
S grasp prediction, grip forecasting, prehension planning, pinch point choice, finger hold
    selection, clutch quality rating, seizing pose proposal, clasp anticipation.
S cloth folding, textile creasing, laundry stacking, fabric pleating, linen tidying, shirt
    doubling, towel arranging, drapery smoothing.
S tactile sensing, touch feeling, haptic perception, contact pressure reading, skin like
    sensation, fingertip awareness, palpation instruments, slip feeling.
S assembly insertion, peg in hole fitting, part mating, component plugging, connector docking,
    workpiece joining, socket seating, bolt engagement.
S liquid pouring, fluid serving, beverage dispensing, drink decanting, water tipping, juice
    ladling, spill free filling, carafe emptying.
F robot wayfinding, mobile guidance, driverless mobility, getting around autonomously,
    cartographic rovers, navigational autonomy, itinerant robots, wheeled independence.
S place recognition, location revisiting, landmark recall, loop closure, site familiarity, spot
    reidentification, whereabouts matching, locale remembrance.
S obstacle avoidance, collision prevention, hindrance dodging, barrier evasion, bump free travel,
    crash circumvention, impediment skirting, swerving safety.
S lane following, road marking keeping, carriageway centring, highway stripe adherence, kerb
    parallel driving, motorway line holding, asphalt alignment, trafficway staying.
S drone exploration, aerial scouting, quadcopter surveying, flying reconnaissance, unmanned
    aircraft roaming, airborne frontier search, rotorcraft discovery, hovering patrol.
S parking planning, vehicle berthing, car bay manoeuvres, garage entry sequencing, stationary slot
    docking, automobile stowing, valet trajectories, kerbside placement.
F legs and feet robots, limbed mobility, gait mechanics, ambulatory science, stride science, pedal
    propulsion, footed robots, locomotor craft.
S quadruped running, four legged sprinting, dog robot galloping, mechanical hound racing, cheetah
    like bounding, canine machine trotting, tetrapod dashing, hoofed cantering.
S stair climbing, step ascending, staircase mounting, flight scaling, riser traversal, multilevel
    hiking, threshold clambering, terrace going up.
S fall recovery, toppling comeback, stumble rescue, getting up again, capsize righting, tumble
    restoration, knockdown resilience, overturn repair.
S biped balance, two legged stability, upright equilibrium, humanoid steadiness, standing poise,
    vertical sway rejection, android footing, bipedal composure.
S energy efficient walking, low power strolling, frugal ambulation, metabolic cost saving, battery
    sparing steps, effort minimal marching, thrifty treading, economical pacing.
F human robot teamwork, people centred automation, social robotics, shared workspaces,
    collaborative robots, companion robotics, sociable hardware, cooperative cobots.
S handover timing, object passing moments, give and take coordination, item transfer synchrony,
    receiving readiness, delivery instant choice, relay exchange scheduling, proffering cues.
S gesture commands, hand signal control, arm waving instruction, pointing directives, sign driven
    operation, mimed orders, semaphore steering, beckoning interfaces.
S intention inference, goal reading, purpose guessing, aim anticipation, plan divination, motive
    estimation, desire attribution, objective mind reading.
S trust calibration, reliance adjustment, confidence in machines, credence tuning, faith
    appropriateness, dependability judgement, overtrust mitigation, assurance balancing.
S assistive feeding, mealtime helpers, spoon aid, eating support, bite transfer, dining
    caretakers, fork assistance, nourishment delivery.
"""
